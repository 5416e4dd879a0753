// SPDX-License-Identifier: Apache-2.0
// codec_drill [--format NAME] [--seed N] [--count N] [--limit MB] [--side N] [--keep FOLDER] [FILE]...:
// decodes changed pictures of every format, and measures what that costs the process.
//
// --count: mutants of each format. --limit: the host's limit of bytes. --side: the most pixels a side of the
// whole pictures that are changed. --keep: where mutants that break a promise are stored. With FILEs, only
// these are decoded. The same seed makes the same mutants.
//
// Four promises are checked. All memory is given back. The process never holds more than the limit and 16 MB.
// A codec never holds more than what it was charged and 16 MB. The host is asked at least every 50 ms of the
// processor's time whether to go on. A time is measured again before it counts, because others share the
// processor's caches. With sanitizers, only they judge.
#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "rewire/tests/fuzz/codecs/codec_host.h"
#include "rewire/tests/fuzz/codecs/picture_mutator.h"
#include "rewire/tests/fuzz/codecs/picture_seeds.h"
#include "rewire/tests/fuzz/codecs/process_memory.h"
#include "rewire/tests/fuzz/codecs/whole_decode.h"

namespace rewire::test {
namespace {

constexpr std::int64_t kMegabyte = std::int64_t{1} << 20, kSlack = 16 * kMegabyte;
constexpr double kLongestGap = 50;
constexpr std::int64_t kGoOn = std::int64_t{1} << 40;

struct Options {
  std::string format, keep;
  std::uint64_t seed = 1;
  std::int64_t count = 1000, limit = 8 * kMegabyte;
  int side = 64;
  std::vector<std::string> files;
};

struct Totals {
  std::int64_t mutants = 0, pictures = 0, stopped = 0, broken = 0;
  std::int64_t most_by_codec = 0, most_resident = 0;
  double longest_gap = 0;
};

class Drill {
 public:
  explicit Drill(const Options& options) : options_(options) {
    ReserveHostMemory(std::max(options.limit, 64 * kMegabyte));
    begun_with_ = Resident();
    ResetMostResident();
  }

  void Try(const std::string& what, const Bytes& file, std::int64_t stop_after, std::int64_t limit) {
    Decoding decoding = DecodePicture(file, limit, stop_after);
    if (!decoding.is_known) return;
    for (int i = 0; i < 4 && decoding.longest_gap > kLongestGap; ++i) {
      const Decoding again = DecodePicture(file, limit, stop_after);
      decoding.longest_gap = std::min(decoding.longest_gap, again.longest_gap);
    }
    const std::int64_t resident = MostResident() - begun_with_;
    ++totals_.mutants;
    totals_.pictures += decoding.has_rows ? 1 : 0;
    totals_.stopped += decoding.has_failed ? 1 : 0;
    totals_.most_by_codec = std::max(totals_.most_by_codec, decoding.by_codec);
    totals_.most_resident = std::max(totals_.most_resident, resident);
    totals_.longest_gap = std::max(totals_.longest_gap, decoding.longest_gap);
    // Sanitizers have memory and times of their own.
    if (!AllocationsAreCounted()) return;
    std::string fault;
    const auto megabytes = [](std::int64_t bytes) { return std::to_string(bytes / kMegabyte) + " MB"; };
    if (resident > limit + kSlack) {
      fault = "the process grows by " + megabytes(resident) + " within a limit of " + megabytes(limit);
      ResetMostResident();
    } else if (decoding.by_codec > decoding.charged + kSlack) {
      fault =
          "a codec holds " + megabytes(decoding.by_codec) + " and is charged " + megabytes(decoding.charged);
    } else if (decoding.left > 0) {
      fault = "a codec leaves " + std::to_string(decoding.left) + " bytes";
    } else if (decoding.longest_gap > kLongestGap) {
      fault = "the host is not asked for " + std::to_string(decoding.longest_gap) + " ms";
    }
    if (!fault.empty()) Report(what, fault, file);
  }
  const Totals& totals() const { return totals_; }

 private:
  void Report(const std::string& what, const std::string& fault, const Bytes& file) {
    ++totals_.broken;
    std::string place;
    if (!options_.keep.empty()) {
      mkdir(options_.keep.c_str(), 0777);
      place =
          options_.keep + "/broken-" + std::to_string(totals_.mutants) + "-" + std::to_string(file.size());
      std::ofstream(place, std::ios::binary)
          .write(reinterpret_cast<const char*>(file.data()), std::ssize(file));
    }
    std::printf("codec_drill: %s: %s%s%s\n", what.c_str(), fault.c_str(), place.empty() ? "" : "; kept as ",
                place.c_str());
  }

  const Options& options_;
  std::int64_t begun_with_ = 0;
  Totals totals_;
};

void Print(const std::string& name, const Totals& totals, double seconds) {
  std::printf(
      "codec_drill: %s: %lld decoded, %lld with rows, %lld ended by the limit or the host, %lld break a "
      "promise; a codec holds "
      "%.1f MB at most, the process %.1f MB; longest %.1f ms without a question; %.1f s\n",
      name.c_str(), static_cast<long long>(totals.mutants), static_cast<long long>(totals.pictures),
      static_cast<long long>(totals.stopped), static_cast<long long>(totals.broken),
      static_cast<double>(totals.most_by_codec) / kMegabyte,
      static_cast<double>(totals.most_resident) / kMegabyte, totals.longest_gap, seconds);
  std::fflush(stdout);
}

// Each whole picture has the pixels that the format's library makes of it at once.
bool CompareSeeds(const PictureFormat& format, const std::vector<PictureSeed>& seeds) {
  bool is_good = true;
  std::int64_t compared = 0;
  ReserveHostMemory(16 * kSlack);
  for (const PictureSeed& seed : seeds) {
    const Decoding decoding = DecodePicture(seed.file, 16 * kSlack, kGoOn, true);
    const std::optional<Bytes> whole = DecodeWhole(format.name, seed.file);
    const bool has_pixels = whole.has_value() && !whole->empty();
    compared += has_pixels ? 1 : 0;
    if (!whole.has_value() || (decoding.has_rows && (!has_pixels || decoding.pixels == *whole))) continue;
    std::printf("codec_drill: %s %s\n", seed.form.c_str(),
                decoding.has_rows ? "has other pixels" : "has no rows");
    is_good = false;
  }
  std::printf("codec_drill: %s: %lld of %zu pictures are compared\n", format.name,
              static_cast<long long>(compared), seeds.size());
  return is_good;
}

bool DrillFormat(const PictureFormat& format, const Options& options) {
  const auto begun = std::chrono::steady_clock::now();
  // More forms than any one run draws; some large ones among them.
  std::vector<PictureSeed> seeds = MakeSeeds(format, 200, options.side, options.seed);
  for (PictureSeed& seed : MakeSeeds(format, 8, 8 * options.side, options.seed + 1))
    seeds.push_back(std::move(seed));
  const bool is_whole = CompareSeeds(format, seeds);
  Drill drill(options);
  for (const PictureSeed& attack : Attacks(format.name)) {
    for (const std::int64_t limit : {options.limit, 16 * kMegabyte, 64 * kMegabyte})
      drill.Try(attack.form, attack.file, kGoOn, limit);
  }
  hostile::Dice dice(options.seed * 1000003);
  for (std::int64_t i = 0; i < options.count; ++i) {
    // The large ones are changed seldom.
    const PictureSeed& seed = dice.OneIn(64) ? dice.Pick(seeds) : seeds[dice.Below(200)];
    const Bytes mutant = Mutate(format.name, seed.file, dice.Pick(seeds).file, dice);
    const std::int64_t stop_after = dice.OneIn(8) ? static_cast<std::int64_t>(dice.Below(20)) : kGoOn;
    drill.Try("mutant " + std::to_string(i) + " of " + seed.form, mutant, stop_after, options.limit);
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  Print(format.name, drill.totals(), took.count());
  return is_whole && drill.totals().broken == 0;
}

bool DrillFiles(const Options& options) {
  Drill drill(options);
  for (const std::string& path : options.files) {
    std::ifstream file(path, std::ios::binary);
    const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    drill.Try(path, Bytes(bytes.begin(), bytes.end()), kGoOn, options.limit);
  }
  Print("files", drill.totals(), 0);
  return drill.totals().broken == 0;
}

int Main(const Options& options) {
  // Memory that is given back goes back to the system, so that the process's size says what is in use.
  constexpr int kBlock = 1 << 17;
  mallopt(M_MMAP_THRESHOLD, kBlock);
  mallopt(M_TRIM_THRESHOLD, kBlock);
  bool is_good = options.files.empty() || DrillFiles(options);
  for (const PictureFormat& format : kPictureFormats) {
    const bool is_asked = options.files.empty() && (options.format.empty() || options.format == format.name);
    if (is_asked && !DrillFormat(format, options)) is_good = false;
  }
  return is_good ? 0 : 1;
}

Options ReadOptions(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string name = arguments[i];
    if (name.substr(0, 2) != "--") {
      options.files.push_back(name);
      continue;
    }
    const std::string value = i + 1 < count ? arguments[++i] : "";
    if (name == "--format") {
      options.format = value;
    } else if (name == "--keep") {
      options.keep = value;
    } else if (name == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--count") {
      options.count = std::strtoll(value.c_str(), nullptr, 10);
    } else if (name == "--limit") {
      options.limit = std::strtoll(value.c_str(), nullptr, 10) * kMegabyte;
    } else if (name == "--side") {
      options.side = std::max(1, std::atoi(value.c_str()));
    } else {
      std::fprintf(stderr, "codec_drill: unknown option %s\n", name.c_str());
      std::exit(2);
    }
  }
  return options;
}

}  // namespace
}  // namespace rewire::test

int main(int count, char** arguments) {
  return rewire::test::Main(rewire::test::ReadOptions(count, arguments));
}
