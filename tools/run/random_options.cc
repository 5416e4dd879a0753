// SPDX-License-Identifier: Apache-2.0
#include "rewire/tools/run/random_options.h"

#include "rewire/tools/options/option_types.h"

namespace rewire::tools {

void AddRandomOptions(CLI::App* app, InputOptions* options, const std::string& group) {
  AddWholeNumber(app, "--seed", &options->seed, "N",
                 "seed of the random numbers; the same seed gives the same numbers")
      ->group(group)
      ->default_str(std::to_string(options->seed));
  app->add_option("--range", options->random_ranges,
                  "range of random numbers of this dtype; default: -1:1 for floats, 0:9 for integers")
      ->allow_extra_args(false)
      ->type_name("DTYPE=LOW:HIGH")
      ->group(group);
  app->add_option("--dim", options->dims, "size of a symbolic dimension of random inputs")
      ->allow_extra_args(false)
      ->type_name("NAME=SIZE")
      ->group(group);
}

}  // namespace rewire::tools
