// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/io/units.h"

#include <catch2/catch.hpp>

#include "rewire/tools/io/table_text.h"
#include "rewire/tools/measure/histogram.h"
#include "rewire/tools/measure/statistics.h"
#include "rewire/tools/measure/usual_times.h"

namespace rewire::tools {
namespace {

using std::chrono::nanoseconds;

TEST_CASE("sizes are powers of 1024") {
  CHECK(ParseBytes("0").value_or(1) == 0U);
  CHECK(ParseBytes("4096").value_or(1) == 4096U);
  CHECK(ParseBytes("64K").value_or(1) == 65536U);
  CHECK(ParseBytes("64KiB").value_or(1) == 65536U);
  CHECK(ParseBytes("2GB").value_or(1) == std::uint64_t{2} << 30);
  CHECK(ParseBytes("1T").value_or(1) == std::uint64_t{1} << 40);
  for (const char* wrong :
       {"", "K", "-1", "1.5M", "64X", "64 M", "99999999999999999999", "18446744073709551615K"}) {
    INFO(wrong);
    CHECK_FALSE(ParseBytes(wrong).has_value());
  }
}

TEST_CASE("sizes of dimensions are whole numbers behind a name") {
  CHECK(ParseNamedSize("N=4")->name == "N");
  CHECK(ParseNamedSize("N=4")->size == 4);
  CHECK(ParseNamedSize("a=b=0")->name == "a=b");
  for (const char* wrong : {"", "N", "N=", "=4", "N=-1", "N=four", "N=4 ", "N=9223372036854775808"}) {
    INFO(wrong);
    CHECK(ParseNamedSize(wrong).error().message() ==
          "'" + std::string(wrong) + "' is no size of a dimension: expected NAME=SIZE, such as N=4");
  }
}

TEST_CASE("times have a unit") {
  CHECK(ParseDuration("2s").value_or(nanoseconds(1)) == nanoseconds(2000000000));
  CHECK(ParseDuration("1.5ms").value_or(nanoseconds(1)) == nanoseconds(1500000));
  CHECK(ParseDuration("80us").value_or(nanoseconds(1)) == nanoseconds(80000));
  CHECK(ParseDuration("0ns").value_or(nanoseconds(1)) == nanoseconds(0));
  for (const char* wrong : {"", "2", "s", "-1s", "2h", "nans", "infs", "1e300s", "2 s"}) {
    INFO(wrong);
    CHECK_FALSE(ParseDuration(wrong).has_value());
  }
}

TEST_CASE("sizes and times are printed with about three digits") {
  CHECK(BytesText(0) == "0 B");
  CHECK(BytesText(1023) == "1023 B");
  CHECK(BytesText(1536) == "1.5 KiB");
  CHECK(BytesText(std::uint64_t{64} << 20) == "64.0 MiB");
  CHECK(BytesText(~std::uint64_t{0}) == "16777216.0 TiB");
  CHECK(DurationText(0) == "0 ns");
  CHECK(DurationText(999) == "999 ns");
  CHECK(DurationText(999.9) == "1.00 us");
  CHECK(DurationText(12345) == "12.3 us");
  CHECK(DurationText(99960) == "100 us");
  CHECK(DurationText(2e9) == "2.00 s");
}

TEST_CASE("percentiles of samples") {
  CHECK(PercentilesOf({}).count == 0);
  const Percentiles one = PercentilesOf({7});
  CHECK(one.median == 7);
  CHECK(one.p99 == 7);
  std::vector<std::int64_t> samples;
  for (int i = 100; i >= 1; --i) samples.push_back(i);
  const Percentiles hundred = PercentilesOf(samples);
  CHECK(hundred.minimum == 1);
  CHECK(hundred.median == 50.5);
  CHECK(hundred.p90 == 90);
  CHECK(hundred.p99 == 99);
  CHECK(hundred.total == 5050);
}

// 20 runs of four places; each takes a little more in some runs than in others. Place `held_up` of run
// `disturbed` takes a thousand times as long.
UsualTimes Measured(std::size_t held_up, std::size_t disturbed) {
  constexpr std::int64_t kUsual[] = {40, 700, 90, 300};
  std::vector<std::int64_t> runs(20, 50);
  std::vector<std::vector<std::int64_t>> places(4);
  for (std::size_t place = 0; place < 4; ++place) {
    for (std::size_t run = 0; run < runs.size(); ++run) {
      const std::int64_t more = place == held_up && run == disturbed ? 1000000 : 0;
      places[place].push_back(kUsual[place] + static_cast<std::int64_t>((run * 7 + place) % 5) + more);
      runs[run] += places[place].back();
    }
  }
  return UsualTimesOf(runs, places);
}

TEST_CASE("one call that is held up changes neither ranks nor shares, wherever it is") {
  const UsualTimes calm = Measured(4, 20);
  CHECK(calm.disturbed.empty());
  CHECK(RankedPlaces(calm) == std::vector<std::size_t>{1, 3, 2, 0});
  for (std::size_t place = 0; place < 4; ++place) {
    for (std::size_t run = 0; run < 20; ++run) {
      const UsualTimes held_up = Measured(place, run);
      CHECK(held_up.disturbed == std::vector<std::size_t>{run});
      CHECK(RankedPlaces(held_up) == RankedPlaces(calm));
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(held_up.places[i].share == Approx(calm.places[i].share).epsilon(0.03));
        CHECK((held_up.places[i].slowest > 1000000) == (i == place));
      }
    }
  }
}

TEST_CASE("what places usually take and what is outside of them add up to a run") {
  const UsualTimes usual = UsualTimesOf({100, 110, 1000}, {{10, 20, 900}, {60, 60, 60}});
  CHECK(usual.places[0].run == 20);
  CHECK(usual.places[0].fastest == 10);
  CHECK(usual.places[0].slowest == 900);
  CHECK(usual.outside.run == 30);
  CHECK(usual.places[0].share + usual.places[1].share + usual.outside.share == Approx(1));
  CHECK(usual.disturbed == std::vector<std::size_t>{2});
  // Kernels of several threads take more than their run.
  CHECK(UsualTimesOf({100}, {{80}, {70}}).outside.run == 0);
  CHECK(UsualTimesOf({}, {{}}).places[0].run == 0);
}

TEST_CASE("tables align their columns and end without spaces") {
  CHECK(TableText({{"name", "n"}, {"a", "10"}, {"bcdef", "7"}}, {1}) ==
        "  name    n\n  a      10\n  bcdef   7\n");
  CHECK(TableText({{"a", ""}, {"b", "c"}}, {}) == "  a\n  b  c\n");
}

TEST_CASE("a histogram has every sample once, the slowest in its last row") {
  CHECK(HistogramOf({}).empty());
  REQUIRE(HistogramOf({5, 5, 5}).size() == 1);
  CHECK(HistogramOf({5, 5, 5})[0].count == 3);
  const std::vector<HistogramRow> disturbed = HistogramOf({100, 101, 150, 199, 90000}, 4);
  REQUIRE(disturbed.size() == 4);
  CHECK(disturbed[0].count == 3);
  CHECK(disturbed[3].from < 300);
  CHECK(disturbed[3].to == 90000);
  CHECK(disturbed[3].count == 1);

  std::vector<std::int64_t> samples;
  for (std::int64_t i = 0; i < 1000; ++i) samples.push_back(100 + i);
  samples.push_back(1000000);
  const std::vector<HistogramRow> rows = HistogramOf(samples, 4);
  REQUIRE(rows.size() == 4);
  std::size_t total = 0;
  for (const HistogramRow& row : rows) total += row.count;
  CHECK(total == samples.size());
  CHECK(rows[0].from == 100);
  CHECK(rows[0].to == rows[1].from);
  CHECK(rows[3].to == 1000000);
  CHECK(HistogramText({{1000, 2000, 80}, {2000, 3000, 0}, {3000, 9000, 1}}, false) ==
        "   1.00 us to  2.00 us        80  ########################################\n"
        "   2.00 us to  3.00 us         0\n"
        "   3.00 us to  9.00 us         1  #\n");
}

TEST_CASE("long lines of a table are broken below their last column") {
  const std::string types = "f32[1, 2, 3], f32[4, 5, 6], f32[7, 8, 9]";
  CHECK(TableText({{"in", types}, {"out", "x"}}, {}, 30) ==
        "  in   f32[1, 2, 3], f32[4, 5,\n"
        "       6], f32[7, 8, 9]\n"
        "  out  x\n");
  CHECK(TableText({{"a_name_that_is_longer_than_a_line", "f32[1, 2]"}}, {}, 20) ==
        "  a_name_that_is_longer_than_a_line\n"
        "          f32[1, 2]\n");
  CHECK(TableText({{"aaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}, {}, 10) == "  aaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
}

}  // namespace
}  // namespace rewire::tools
