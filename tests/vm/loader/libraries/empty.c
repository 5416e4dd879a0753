/* SPDX-License-Identifier: Apache-2.0 */
/* TVM writes this beside a model that calls no kernel: a library that exports nothing. */
typedef int nothing;
