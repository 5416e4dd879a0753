; fails: run-time error: fail_with_its_note@0 (fatal "no pattern matches"): the program stopped itself: no pattern matches
.func fail_with_its_note() -> value
  fatal "no pattern matches"
.end

; fails: run-time error: fail_without_a_note@0 (fatal _): the program stopped itself
.func fail_without_a_note() -> value
  fatal
.end

.func stops(x: value) -> value
  fatal "inside" @ "Match_3"
.end

; fails: run-time error: stops@0 (fatal "inside") [Match_3]: the program stopped itself: inside
.func fail_in_a_callee() -> value
  %x = load_consti 1
  %y = invoke stops(%x)
  ret %y
.end

.func test_is_passed_by() -> value
  %x = load_consti 1
  if %x == %x goto good else bad
bad:
  fatal "1 is not 1"
good:
  ret %x
.end
