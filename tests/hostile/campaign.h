// SPDX-License-Identifier: Apache-2.0
// Many mutants, in processes of their own, so that one that ends its process is recorded and the rest go on.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rewire/tests/hostile/bytes.h"
#include "rewire/tests/hostile/judge.h"

namespace rewire::hostile {

struct Counts {
  std::uint64_t mutants = 0;
  std::uint64_t read = 0;
  std::uint64_t verified = 0;
  std::uint64_t linked = 0;
  std::uint64_t run = 0;    // mutants of which a function was called
  std::uint64_t good = 0;   // ... and gave a result
  std::uint64_t bound = 0;  // ... whose outputs were bound and compared
  std::uint64_t calls = 0;

  void Add(const Verdict& verdict);
  Counts& operator+=(const Counts& other);
  std::string Text() const;
};

// The fault that a mutant showed: the kind is the same for the same cause, as far as that can be told.
struct Finding {
  std::string kind;  // also the file in which it shows, without the line
  std::string text;
};

struct Task {
  std::uint64_t number = 0;
  Bytes file;
};
// Judges one file, in a child; says in `progress` what it is at.
using JudgeFunction = std::function<Verdict(const Task& task, Progress* progress)>;
// The judge of executables (judge.h).
JudgeFunction JudgeOfExecutables();

// The findings of one child process. A child that was ended by what it judged is one more finding.
struct ChildReport {
  Counts counts;
  std::map<std::uint64_t, std::vector<Finding>> findings;  // by the mutant's number
  std::string answer;                                      // to the last
  bool ended_early = false;
  std::uint64_t ended_at = 0;  // the mutant's number
};
// Judges what `next` gives in a child, until it gives nothing.
ChildReport JudgeInChild(const std::function<bool(Task*)>& next, const JudgeFunction& judge);

struct CampaignOptions {
  std::uint64_t first = 0;
  std::uint64_t mutants = 0;  // how many; 0: until something else ends it
  // It ends when so many have passed the reader and so many were run; 0: not for that.
  std::uint64_t read = 0;
  std::uint64_t run = 0;
  std::uint64_t seconds = 0;  // it ends after this time; 0: not for that
  // A file with the kinds of finding that are known and open, one a line; they are counted and pass.
  std::string known;
};

// Judges the files that `make` makes of numbers. Prints as it goes. True when nothing was found.
bool RunCampaign(const std::function<Bytes(std::uint64_t)>& make, const JudgeFunction& judge,
                 const CampaignOptions& options);

}  // namespace rewire::hostile
