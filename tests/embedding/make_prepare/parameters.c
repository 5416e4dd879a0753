/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the parameters of a file. */
#include <rewire/vm/c_api.h>
#include <stdio.h>

int main(int argc, char** argv) {
  RewireParameterSet* set = NULL;
  if (rewire_parameter_set_open(argc > 1 ? argv[1] : "", NULL, NULL, 0, &set) != kRewireOk) {
    puts(rewire_last_error_message());
    return 1;
  }
  uint32_t count = 0;
  rewire_parameter_set_count(set, &count);
  for (uint32_t i = 0; i < count; ++i) {
    const char* name = NULL;
    rewire_parameter_set_name(set, i, &name);
    puts(name);
  }
  rewire_parameter_set_destroy(set);
  return 0;
}
