// SPDX-License-Identifier: Apache-2.0
#include "rewire/serve/run/batch_costs.h"

#include <algorithm>
#include <limits>

namespace rewire::serve {
namespace {

// More kinds than a model usually has. The one that was used longest ago gives its place.
constexpr std::size_t kMostKinds = 64;
// The first run of a form makes what later ones find made, and is not counted.
constexpr std::uint32_t kFirst = 1;
// So many times of a form are enough to compare it, and fewer of long runs, which vary less.
constexpr std::uint32_t kEnough = 3;
constexpr std::uint32_t kEnoughLong = 1;
constexpr double kLong = 5e6;
// While a form is known, the time of one of so many runs is taken.
constexpr std::uint64_t kSampled = 8;
// Runs in a row that a trial makes: behind a run of another size, the first one pays for the change.
constexpr std::uint32_t kTrials = 4;
constexpr std::uint32_t kTrialsLong = 2;
// A trial may take this part of the time, and less if it was much dearer the last time.
constexpr double kBetweenTrials = 64;
constexpr double kBetweenDearTrials = 256;
constexpr double kDear = 1.5;
// A batch must be cheaper by more than what times differ anyway, because it answers its first request later.
constexpr double kCheaper = 0.97;

}  // namespace

BatchCosts::Kind BatchCosts::KindOf(std::uint64_t row_bytes) {
  Kind octave = 0;
  while ((row_bytes >> octave) > 7) ++octave;
  return octave * 4 + static_cast<Kind>(row_bytes >> octave);
}

std::size_t BatchCosts::SizeOf(std::int64_t rows) {
  std::size_t size = 0;
  while (size + 1 < kSizes && (std::int64_t{1} << size) < rows) ++size;
  return size;
}

void BatchCosts::Form::Add(float ns, bool is_long) {
  if (++count <= kFirst) return;
  recent[(count - kFirst - 1) % kKept] = ns;
  const std::uint32_t known = std::min(count - kFirst, kKept);
  if (known < (is_long ? kEnoughLong : kEnough)) return;
  std::array<float, kKept> sorted = recent;
  std::nth_element(sorted.begin(), sorted.begin() + known / 2, sorted.begin() + known);
  row_ns = std::max(sorted[known / 2], 1e-3F);
}

BatchCosts::Costs& BatchCosts::Of(Kind kind) {
  auto found = kinds_.find(kind);
  if (found == kinds_.end()) {
    if (kinds_.size() >= kMostKinds) {
      kinds_.erase(std::min_element(kinds_.begin(), kinds_.end(), [](const auto& a, const auto& b) {
        return a.second.used < b.second.used;
      }));
    }
    found = kinds_.try_emplace(kind).first;
  }
  found->second.used = ++choices_;
  return found->second;
}

// The time that they take one by one; 0 if it is not known.
double BatchCosts::Alone(const Costs& costs, Span<const std::int64_t> rows_up_to) {
  double ns = 0;
  std::int64_t before = 0;
  for (const std::int64_t up_to : rows_up_to) {
    const std::int64_t rows = std::max<std::int64_t>(1, up_to - before);
    const float row_ns = costs.alone[SizeOf(rows)].row_ns;
    if (row_ns == 0) return 0;
    ns += static_cast<double>(row_ns) * static_cast<double>(rows);
    before = up_to;
  }
  return ns;
}

// How many requests a batch of this size takes; 0 if it would not be one of this size.
std::size_t BatchCosts::UpTo(Span<const std::int64_t> rows_up_to, std::size_t size) {
  const auto end = std::upper_bound(rows_up_to.begin(), rows_up_to.end(), std::int64_t{1} << size);
  const auto count = static_cast<std::size_t>(end - rows_up_to.begin());
  return count > 1 && SizeOf(rows_up_to[count - 1]) == size ? count : 0;
}

BatchCosts::Plan BatchCosts::Best(const Costs& costs, Span<const std::int64_t> rows_up_to) {
  const std::int64_t rows = rows_up_to[rows_up_to.size() - 1];
  const double alone = Alone(costs, rows_up_to);
  if (alone == 0) return {1, 0};
  Plan best = {1, alone * kCheaper};
  bool rises = true;  // the size before is the best one
  for (std::size_t size = 1; size <= SizeOf(rows); ++size) {
    const std::size_t count = UpTo(rows_up_to, size);
    if (count == 0) continue;
    const double ns = static_cast<double>(costs.together[size].row_ns) * static_cast<double>(rows);
    if (ns == 0 && rises) return {count, 0};
    rises = ns != 0 && ns <= best.ns;
    if (rises) best = {count, ns};
  }
  if (best.count == 1) best.ns = alone;
  return best;
}

// Looks for the choice that was measured longest ago, and makes it for some runs.
void BatchCosts::BeginTrials(Costs* costs, const Plan& best, Span<const std::int64_t> rows_up_to) {
  const std::int64_t rows = rows_up_to[rows_up_to.size() - 1];
  const auto alone_row_ns = static_cast<double>(costs->alone[SizeOf(rows_up_to[0])].row_ns);
  std::uint64_t oldest = costs->alone[SizeOf(rows_up_to[0])].last;
  std::size_t tried = 0;
  for (std::size_t size = 1; size <= SizeOf(rows); ++size) {
    if (UpTo(rows_up_to, size) == 0 || costs->together[size].last >= oldest) continue;
    oldest = costs->together[size].last;
    tried = size;
  }
  const std::size_t count = tried == 0 ? 1 : UpTo(rows_up_to, tried);
  if (count == best.count) {
    costs->explore_from = costs->ns + best.ns;  // it is made anyway
    return;
  }
  costs->tried = tried;
  const std::int64_t tried_rows = rows_up_to[count - 1];
  costs->trials = alone_row_ns * static_cast<double>(tried_rows) < kLong ? kTrials : kTrialsLong;
}

std::size_t BatchCosts::Choose(Kind kind, Span<const std::int64_t> rows_up_to) {
  if (rows_up_to.size() <= 1) return 1;
  Costs& costs = Of(kind);
  const Plan best = Best(costs, rows_up_to);
  std::size_t count = best.count;
  if (costs.trials == 0 && best.ns > 0 && costs.ns >= costs.explore_from) {
    BeginTrials(&costs, best, rows_up_to);
  }
  if (costs.trials > 0 && best.ns > 0) {
    const std::size_t trial = costs.tried == 0 ? 1 : UpTo(rows_up_to, costs.tried);
    if (trial == 0) costs.trials = 0;  // too few wait for it now
    if (trial != 0) count = trial;
  }
  if (best.count == 1 && best.ns > 0 && count == 1) {
    costs.chosen = rows_up_to.size() - 1;
    ++statistics_.declined;
  }
  statistics_.alone_row_ns = static_cast<double>(costs.alone[SizeOf(rows_up_to[0])].row_ns);
  // The batch that is chosen counts, or the best one that is known and declined.
  const std::size_t largest = SizeOf(rows_up_to[best.count == 1 ? rows_up_to.size() - 1 : best.count - 1]);
  float row_ns = 0;
  for (std::size_t size = best.count == 1 ? 1 : largest; size <= largest; ++size) {
    const float ns = costs.together[size].row_ns;
    if (ns != 0 && (row_ns == 0 || ns < row_ns)) row_ns = ns;
  }
  statistics_.batch_row_ns = static_cast<double>(row_ns);
  return count;
}

bool BatchCosts::RunsAlone(Kind kind) {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end() || found->second.chosen == 0) return false;
  // Nobody waits with the last one.
  if (--found->second.chosen > 0) ++statistics_.declined;
  return true;
}

std::int64_t BatchCosts::RowsToWaitFor(Kind kind, std::int64_t rows, std::int64_t most) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return most;
  const Costs& costs = found->second;
  const double alone = static_cast<double>(costs.alone[SizeOf(rows)].row_ns);
  double least = std::numeric_limits<double>::infinity();
  std::size_t best = 0;
  std::size_t largest = 0;
  for (std::size_t size = 1; size <= SizeOf(most); ++size) {
    const double ns = static_cast<double>(costs.together[size].row_ns);
    if (ns == 0) continue;
    largest = size;
    if (ns > least) continue;
    least = ns;
    best = size;
  }
  if (alone == 0 || largest == 0) return most;
  if (least > alone * kCheaper) return rows;
  // Larger ones than have ever formed may be better still.
  return best == largest ? most : std::min(most, std::int64_t{1} << best);
}

bool BatchCosts::Wants(Kind kind, std::int64_t rows, bool together) const {
  const auto found = kinds_.find(kind);
  if (found == kinds_.end()) return true;
  const Costs& costs = found->second;
  const Form& form = (together ? costs.together : costs.alone)[SizeOf(rows)];
  return costs.trials > 0 || form.count < kFirst + Form::kKept || form.passed >= kSampled;
}

void BatchCosts::Add(Kind kind, std::int64_t rows, bool together, std::uint64_t ns) {
  Costs& costs = Of(kind);
  Form& form = (together ? costs.together : costs.alone)[SizeOf(rows)];
  form.Add(static_cast<float>(ns) / static_cast<float>(std::max<std::int64_t>(1, rows)),
           static_cast<double>(ns) >= kLong);
  form.passed = 0;
  Took(&costs, rows, together, static_cast<double>(ns));
}

void BatchCosts::Pass(Kind kind, std::int64_t rows, bool together) {
  Costs& costs = Of(kind);
  Form& form = (together ? costs.together : costs.alone)[SizeOf(rows)];
  ++form.passed;
  Took(&costs, rows, together, static_cast<double>(form.row_ns) * static_cast<double>(rows));
}

void BatchCosts::Took(Costs* costs, std::int64_t rows, bool together, double ns) {
  costs->ns += ns;
  Form& form = (together ? costs->together : costs->alone)[SizeOf(rows)];
  form.last = ++costs->runs;
  if (costs->trials == 0 || together != (costs->tried != 0)) return;
  --costs->trials;
  const Form& alone = costs->alone[0];
  const Form& tried = together ? form : alone;
  double cheapest = static_cast<double>(alone.row_ns);
  for (const Form& other : costs->together) {
    if (other.row_ns != 0) cheapest = std::min(cheapest, static_cast<double>(other.row_ns));
  }
  const bool is_dear = tried.row_ns != 0 && static_cast<double>(tried.row_ns) > kDear * cheapest;
  costs->explore_from =
      std::max(costs->explore_from, costs->ns) + ns * (is_dear ? kBetweenDearTrials : kBetweenTrials);
}

}  // namespace rewire::serve
