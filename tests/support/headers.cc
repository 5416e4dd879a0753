// SPDX-License-Identifier: Apache-2.0
// The target of the precompiled header that tests share needs a source.
namespace rewire::test {}
