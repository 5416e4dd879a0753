/* SPDX-License-Identifier: Apache-2.0 */
/* Custom operators of a library and of the host. */
#include <dlfcn.h>
#include <string.h>

#include "rewire/tests/onnxruntime_api/checks.h"
#include "rewire/tests/onnxruntime_api/custom_ops_library.h"

enum {
  ATTRIBUTE_FLOAT = 1,
  ATTRIBUTE_TENSOR = 4,
  ATTRIBUTE_FLOATS = 6,
  ATTRIBUTE_STRING = 3,
  ATTRIBUTE_INTS = 7,
  ATTRIBUTE_STRINGS = 8
};

/* A field of four bytes. */
static void PutFloat(Bytes* to, int field, float value) {
  to->data[to->size++] = (unsigned char)(field << 3 | 5);
  memcpy(to->data + to->size, &value, sizeof value);
  to->size += sizeof value;
}

static Bytes Attribute(const char* name, int type) {
  Bytes attribute = {{0}, 0};
  PutText(&attribute, 1, name);
  PutNumber(&attribute, 20, (uint64_t)type);
  return attribute;
}

static Bytes WithDomain(const Bytes* graph) {
  Bytes model = Model(graph, 20);
  Bytes opset = {{0}, 0};
  PutText(&opset, 1, "test.custom");
  PutNumber(&opset, 2, 1);
  PutBytes(&model, 8, &opset);
  return model;
}

/* doubled = 2 * the elements of x above 2.5; at: where they are, unless it is left out. */
static Bytes AboveModel(int with_at) {
  Bytes graph = {{0}, 0};
  Bytes node = Node("Above", "test.custom", "x", with_at ? "values,at" : "values");
  Bytes least = Attribute("least", ATTRIBUTE_FLOAT);
  PutFloat(&least, 2, 2.5F);
  PutBytes(&node, 5, &least);
  PutBytes(&graph, GRAPH_NODE, &node);
  node = Node("Add", "", "values,values", "doubled");
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "above");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "N,2");
  PutTensor(&graph, GRAPH_OUTPUT, "doubled", 1, "M");
  if (with_at) PutTensor(&graph, GRAPH_OUTPUT, "at", 7, "M,1");
  return WithDomain(&graph);
}

static Bytes FactsModel(int64_t fail) {
  Bytes graph = {{0}, 0};
  Bytes node = Node("Facts", "test.custom", "x,y,x", "facts");
  Bytes part = Attribute("text", ATTRIBUTE_STRING);
  Bytes table = {{0}, 0};
  const int16_t elements[] = {7, -5, 9};
  PutText(&node, 3, "n");
  PutIntAttribute(&node, "fail", fail);
  PutText(&part, 4, "hello");
  PutBytes(&node, 5, &part);
  part = Attribute("list", ATTRIBUTE_INTS);
  PutNumber(&part, 8, 4);
  PutNumber(&part, 8, 2);
  PutBytes(&node, 5, &part);
  part = Attribute("floats", ATTRIBUTE_FLOATS);
  PutFloat(&part, 7, 0.75F);
  PutBytes(&node, 5, &part);
  part = Attribute("names", ATTRIBUTE_STRINGS);
  PutText(&part, 9, "ab");
  PutText(&part, 9, "");
  PutText(&part, 9, "xyz");
  PutBytes(&node, 5, &part);
  PutNumber(&table, 1, 3);
  PutNumber(&table, 2, 5);
  PutData(&table, 9, elements, sizeof elements);
  part = Attribute("table", ATTRIBUTE_TENSOR);
  PutBytes(&part, 5, &table);
  PutBytes(&node, 5, &part);
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "facts");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "4");
  PutTensor(&graph, GRAPH_INPUT, "y", 1, "2");
  PutTensor(&graph, GRAPH_OUTPUT, "facts", 7, "K");
  return WithDomain(&graph);
}

static const int64_t* Integers(OrtValue* value) {
  void* data = NULL;
  OK(api->GetTensorMutableData(value, &data));
  return data;
}

static size_t CountOf(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* info = NULL;
  size_t count = 0;
  OK(api->GetTensorTypeAndShape(value, &info));
  OK(api->GetTensorShapeElementCount(info, &count));
  api->ReleaseTensorTypeAndShapeInfo(info);
  return count;
}

/* A shape that depends on values, in two runs that differ. */
static void TestAbove(const OrtSessionOptions* options) {
  const char* in[] = {"x"};
  const char* out[] = {"doubled", "at"};
  float data[6] = {1, 3, 2, 5, 4, 0};
  const int64_t shape[] = {3, 2};
  OrtValue* x = Floats(data, 6, shape, 2);
  const OrtValue* inputs[1];
  OrtValue* outputs[2];
  int run, with_at;
  for (with_at = 0; with_at < 2; ++with_at) {
    const Bytes model = AboveModel(with_at);
    OrtSession* session = Open(&model, options);
    if (session == NULL) continue;
    for (run = 0; run < 2; ++run) {
      void* doubled = NULL;
      data[3] = run == 0 ? 5 : 0;
      inputs[0] = x;
      outputs[0] = outputs[1] = NULL;
      if (!OK(api->Run(session, NULL, in, inputs, 1, out, (size_t)(1 + with_at), outputs))) continue;
      EQUAL(CountOf(outputs[0]), run == 0 ? 3 : 2);
      OK(api->GetTensorMutableData(outputs[0], &doubled));
      EQUAL(((float*)doubled)[0], 6);
      EQUAL(((float*)doubled)[1], run == 0 ? 10 : 8);
      if (with_at) {
        EQUAL(CountOf(outputs[1]), run == 0 ? 3 : 2);
        EQUAL(Integers(outputs[1])[0], 1);
        EQUAL(Integers(outputs[1])[1], run == 0 ? 3 : 4);
        api->ReleaseValue(outputs[1]);
      }
      api->ReleaseValue(outputs[0]);
    }
    api->ReleaseSession(session);
  }
  api->ReleaseValue(x);
}

static void TestFacts(const OrtSessionOptions* options) {
  const Bytes model = FactsModel(0);
  OrtSession* session = Open(&model, options);
  const char* in[] = {"x", "y"};
  const char* out[] = {"facts"};
  float data[4] = {1, 2, 3, 4};
  const int64_t four[] = {4}, two[] = {2};
  OrtValue* given[2];
  const OrtValue* inputs[2];
  OrtValue* output = NULL;
  const int64_t* facts;
  if (session == NULL) return;
  given[0] = Floats(data, 4, four, 1);
  given[1] = Floats(data, 2, two, 1);
  inputs[0] = given[0];
  inputs[1] = given[1];
  if (OK(api->Run(session, NULL, in, inputs, 2, out, 1, &output))) {
    facts = Integers(output);
    EQUAL(facts[FACT_INPUTS], 3);
    EQUAL(facts[FACT_OUTPUTS], 1);
    EQUAL(facts[FACT_NAMED], 1);
    EQUAL(facts[FACT_NODE], 1);
    EQUAL(facts[FACT_TEXT], 6000 + 'h');
    EQUAL(facts[FACT_TEXT_SIZE], 6);
    EQUAL(facts[FACT_TOO_SMALL], 0);
    EQUAL(facts[FACT_LIST], 242);
    EQUAL(facts[FACT_FLOATS], 103);
    EQUAL(facts[FACT_MISSING], 0);
    EQUAL(facts[FACT_TABLE], 2995);
    EQUAL(facts[FACT_TYPE], ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
    EQUAL(facts[FACT_GIVEN], 424);
    EQUAL(facts[FACT_PAST_END], 1);
    EQUAL(facts[FACT_TOGETHER], 111);
    EQUAL(facts[FACT_SCRATCH], 1);
    EQUAL(facts[FACT_LOGGED], 1);
    EQUAL(facts[FACT_ENTRY], 1);
    EQUAL(facts[FACT_OPERATOR], 11);
    EQUAL(facts[FACT_OUTPUT], 100 + ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
    EQUAL(facts[FACT_CONSTANT], 0);
    EQUAL(facts[FACT_CONTEXT], 1);
    EQUAL(facts[FACT_COPIED], 1);
    EQUAL(facts[FACT_NAMES], 3011);
    EQUAL(facts[FACT_NO_NAMES], -1);
    EQUAL(facts[FACT_OTHER_NAMES], 0);
    EQUAL(facts[FACT_OTHER_LISTS], 110);
    api->ReleaseValue(output);
  }
  api->ReleaseSession(session);
  {
    const Bytes unmade = FactsModel(1), failing = FactsModel(2);
    session = NULL;
    output = NULL;
    FAILS(api->CreateSessionFromArray(env, unmade.data, unmade.size, options, &session),
          ORT_RUNTIME_EXCEPTION, "the kernel cannot be made");
    session = Open(&failing, options);
    if (session != NULL) {
      FAILS(api->Run(session, NULL, in, inputs, 2, out, 1, &output), ORT_FAIL, "the call fails");
      api->ReleaseSession(session);
    }
  }
  api->ReleaseValue(given[0]);
  api->ReleaseValue(given[1]);
}

/* twice: the strings of x that are longer than 2 bytes, each twice; lengths, unless they are left out. */
static Bytes LongerModel(int with_lengths) {
  Bytes graph = {{0}, 0};
  Bytes node = Node("Longer", "test.custom", "x", with_lengths ? "kept,lengths" : "kept");
  PutIntAttribute(&node, "least", 2);
  PutBytes(&graph, GRAPH_NODE, &node);
  node = Node("StringConcat", "", "kept,kept", "twice");
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "longer");
  PutTensor(&graph, GRAPH_INPUT, "x", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "N");
  PutTensor(&graph, 13, "kept", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "M");
  PutTensor(&graph, GRAPH_OUTPUT, "twice", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "M");
  if (with_lengths) PutTensor(&graph, GRAPH_OUTPUT, "lengths", 7, "N");
  return WithDomain(&graph);
}

static Bytes JoinedModel(int with_y) {
  Bytes graph = {{0}, 0};
  const Bytes node = Node("Joined", "test.custom", with_y ? "x,y" : "x", "joined");
  PutBytes(&graph, GRAPH_NODE, &node);
  PutText(&graph, GRAPH_NAME, "joined");
  PutTensor(&graph, GRAPH_INPUT, "x", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "N,2");
  if (with_y) PutTensor(&graph, GRAPH_INPUT, "y", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "N,2");
  PutTensor(&graph, GRAPH_OUTPUT, "joined", ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "N,2");
  return WithDomain(&graph);
}

static OrtValue* Strings(const char* const* strings, const int64_t* shape, size_t rank) {
  OrtValue* value = NULL;
  OK(api->CreateTensorAsOrtValue(Allocator(), shape, rank, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, &value));
  OK(api->FillStringTensor(value, strings, CountOf(value)));
  return value;
}

static void CheckString(const OrtValue* value, size_t index, const char* expected) {
  char text[64] = "";
  size_t length = 0;
  OK(api->GetStringTensorElementLength(value, index, &length));
  if (length < sizeof text) OK(api->GetStringTensorElement(value, length, index, text));
  TEXT(text, expected);
}

/* Strings that a custom operator reads and makes, and that another operator reads. */
static void TestStringOps(const OrtSessionOptions* options) {
  const char* in[] = {"x", "y"};
  const char* out[] = {"twice", "lengths"};
  const char* joined_name[] = {"joined"};
  const char* const words[] = {"abc", "", "h\xc3\xa9llo", "de"};
  const char* const others[] = {"1", "22", "", "4"};
  int64_t sizes[] = {4, 3, 1, 0};
  const int64_t square[] = {2, 2};
  const OrtValue* inputs[2];
  OrtValue* outputs[2];
  OrtValue *x, *y;
  size_t run;
  int with;
  for (with = 0; with < 2; ++with) {
    const Bytes model = LongerModel(with);
    OrtSession* session = Open(&model, options);
    for (run = 0; session != NULL && run < sizeof sizes / sizeof *sizes; ++run) {
      const size_t kept = sizes[run] > 2 ? 2 : (size_t)(sizes[run] > 0);
      inputs[0] = x = Strings(words, &sizes[run], 1);
      outputs[0] = outputs[1] = NULL;
      if (OK(api->Run(session, NULL, in, inputs, 1, out, (size_t)(1 + with), outputs))) {
        EQUAL(CountOf(outputs[0]), kept);
        if (kept > 0) CheckString(outputs[0], 0, "abcabc");
        if (kept > 1) CheckString(outputs[0], 1, "h\xc3\xa9lloh\xc3\xa9llo");
        if (with && sizes[run] == 4) EQUAL(Integers(outputs[1])[2], 6);
        if (with && sizes[run] == 4) EQUAL(Integers(outputs[1])[1], 0);
        api->ReleaseValue(outputs[0]);
        api->ReleaseValue(outputs[1]);
      }
      api->ReleaseValue(x);
    }
    if (session != NULL) api->ReleaseSession(session);
  }
  x = Strings(words, square, 2);
  y = Strings(others, square, 2);
  inputs[0] = x;
  inputs[1] = y;
  for (with = 0; with < 2; ++with) {
    const Bytes model = JoinedModel(with);
    OrtSession* session = Open(&model, options);
    outputs[0] = NULL;
    if (session == NULL) continue;
    if (OK(api->Run(session, NULL, in, inputs, (size_t)(1 + with), joined_name, 1, outputs))) {
      EQUAL(CountOf(outputs[0]), 4);
      CheckString(outputs[0], 0, with ? "abc-1" : "abc-");
      CheckString(outputs[0], 1, with ? "-22" : "-");
      CheckString(outputs[0], 2, "h\xc3\xa9llo-");
      CheckString(outputs[0], 3, with ? "de-4" : "de-");
      api->ReleaseValue(outputs[0]);
    }
    api->ReleaseSession(session);
  }
  api->ReleaseValue(x);
  api->ReleaseValue(y);
}

void TestCustomOps(const char* library) {
  const Bytes model = AboveModel(1);
  OrtSessionOptions* options = NULL;
  OrtSession* session = NULL;
  void* handle = NULL;
  OK(api->CreateSessionOptions(&options));
  OK(api->RegisterCustomOpsLibrary_V2(options, library));
  OK(api->AddSessionConfigEntry(options, "of.the.session", "yes"));
  TestAbove(options);
  TestFacts(options);
  TestStringOps(options);
  api->ReleaseSessionOptions(options);

  OK(api->CreateSessionOptions(&options));
  OK(api->RegisterCustomOpsLibrary(options, library, &handle));
  TestAbove(options);
  api->ReleaseSessionOptions(options);
  if (handle != NULL) dlclose(handle);

  OK(api->CreateSessionOptions(&options));
  FAILS(api->RegisterCustomOpsLibrary_V2(options, "no such library.so"), ORT_FAIL, "no such library.so");
  FAILS(api->RegisterCustomOpsUsingFunction(options, "NoSuchFunction"), ORT_FAIL, "NoSuchFunction");
  /* Without its library the operator is not known. */
  FAILS(api->CreateSessionFromArray(env, model.data, model.size, options, &session), ORT_FAIL, "");
  api->ReleaseSessionOptions(options);
}
