.func test_forward() -> value
  %x = load_consti 1
  goto end
  fatal "a jump fell through"
end:
  ret %x
.end

; Counts three rounds with the tags of a list.
.func test_backward() -> value
  %list = alloc_adt tag=0 ()
  %list = alloc_adt tag=1 (%list)
  %list = alloc_adt tag=1 (%list)
  %list = alloc_adt tag=1 (%list)
  %one = load_consti 1
again:
  %tag = get_tag %list
  if %tag == %one goto shorter else done
shorter:
  %list = get_field %list, index=0
  goto again
done:
  ret %list
.end

; limits: steps=1000
; fails: step limit: fail_endless@0 (goto L0): the limit of 1000 instructions is used up; raise Limits::steps if the program needs more
.func fail_endless() -> value
here:
  goto here
.end
