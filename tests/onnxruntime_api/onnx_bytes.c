/* SPDX-License-Identifier: Apache-2.0 */
#include "rewire/tests/onnxruntime_api/onnx_bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void PutByte(Bytes* to, unsigned byte) {
  if (to->size == sizeof to->data) {
    fprintf(stderr, "a model of the test exceeds its buffer\n");
    abort();
  }
  to->data[to->size++] = (unsigned char)byte;
}

static void PutVarint(Bytes* to, uint64_t value) {
  while (value >= 128) {
    PutByte(to, (unsigned)(value & 127) | 128);
    value >>= 7;
  }
  PutByte(to, (unsigned)value);
}

void PutNumber(Bytes* to, int field, uint64_t value) {
  PutVarint(to, (uint64_t)field << 3);
  PutVarint(to, value);
}

void PutData(Bytes* to, int field, const void* data, size_t size) {
  size_t i;
  PutVarint(to, (uint64_t)field << 3 | 2);
  PutVarint(to, size);
  for (i = 0; i < size; ++i) PutByte(to, ((const unsigned char*)data)[i]);
}

void PutText(Bytes* to, int field, const char* text) { PutData(to, field, text, strlen(text)); }
void PutBytes(Bytes* to, int field, const Bytes* from) { PutData(to, field, from->data, from->size); }

/* Calls Put for each part of a list with commas. */
static void PutList(Bytes* to, int field, const char* list) {
  while (*list != '\0') {
    const size_t size = strcspn(list, ",");
    PutData(to, field, list, size);
    list += size;
    if (*list == ',') ++list;
  }
}

Bytes TensorValue(const char* name, int element_type, const char* dims) {
  Bytes shape = {{0}, 0};
  Bytes tensor = {{0}, 0};
  Bytes type = {{0}, 0};
  Bytes value = {{0}, 0};
  while (*dims != '\0') {
    Bytes dim = {{0}, 0};
    const size_t size = strcspn(dims, ",");
    if (*dims >= '0' && *dims <= '9') {
      PutNumber(&dim, 1, strtoull(dims, NULL, 10));
    } else if (*dims != '?') {
      PutData(&dim, 2, dims, size);
    }
    PutBytes(&shape, 1, &dim);
    dims += size;
    if (*dims == ',') ++dims;
  }
  PutNumber(&tensor, 1, (uint64_t)element_type);
  PutBytes(&tensor, 2, &shape);
  PutBytes(&type, 1, &tensor);
  PutText(&value, 1, name);
  PutBytes(&value, 2, &type);
  return value;
}

Bytes Node(const char* op, const char* domain, const char* inputs, const char* outputs) {
  Bytes node = {{0}, 0};
  PutList(&node, 1, inputs);
  PutList(&node, 2, outputs);
  PutText(&node, 4, op);
  if (*domain != '\0') PutText(&node, 7, domain);
  return node;
}

void PutIntAttribute(Bytes* node, const char* name, int64_t value) {
  Bytes attribute = {{0}, 0};
  PutText(&attribute, 1, name);
  PutNumber(&attribute, 3, (uint64_t)value);
  PutNumber(&attribute, 20, 2);
  PutBytes(node, 5, &attribute);
}

void PutGraphAttribute(Bytes* node, const char* name, const Bytes* graph) {
  Bytes attribute = {{0}, 0};
  PutText(&attribute, 1, name);
  PutBytes(&attribute, 6, graph);
  PutNumber(&attribute, 20, 5);
  PutBytes(node, 5, &attribute);
}

Bytes Model(const Bytes* graph, int opset) {
  Bytes opset_id = {{0}, 0};
  Bytes entry = {{0}, 0};
  Bytes model = {{0}, 0};
  PutText(&opset_id, 1, "");
  PutNumber(&opset_id, 2, (uint64_t)opset);
  PutText(&entry, 1, "key");
  PutText(&entry, 2, "value of it");
  PutNumber(&model, 1, 8);
  PutText(&model, 2, "test producer");
  PutText(&model, 4, "test.domain");
  PutNumber(&model, 5, 7);
  PutText(&model, 6, "a description");
  PutBytes(&model, 7, graph);
  PutBytes(&model, 8, &opset_id);
  PutBytes(&model, 14, &entry);
  return model;
}

void PutTensor(Bytes* graph, int field, const char* name, int type, const char* dims) {
  const Bytes part = TensorValue(name, type, dims);
  PutBytes(graph, field, &part);
}

Bytes LoopModel(void) {
  Bytes body = {{0}, 0};
  Bytes graph = {{0}, 0};
  Bytes part = Node("Identity", "", "c", "c2");
  PutBytes(&body, GRAPH_NODE, &part);
  part = Node("Sin", "", "v", "s");
  PutBytes(&body, GRAPH_NODE, &part);
  part = Node("Add", "", "s,x", "v2");
  PutBytes(&body, GRAPH_NODE, &part);
  PutText(&body, GRAPH_NAME, "body");
  PutTensor(&body, GRAPH_INPUT, "i", 7, "");
  PutTensor(&body, GRAPH_INPUT, "c", 9, "");
  PutTensor(&body, GRAPH_INPUT, "v", 1, "4");
  PutTensor(&body, GRAPH_OUTPUT, "c2", 9, "");
  PutTensor(&body, GRAPH_OUTPUT, "v2", 1, "4");
  part = Node("Loop", "", "n,,x", "y");
  PutGraphAttribute(&part, "body", &body);
  PutBytes(&graph, GRAPH_NODE, &part);
  PutText(&graph, GRAPH_NAME, "loop");
  PutTensor(&graph, GRAPH_INPUT, "n", 7, "");
  PutTensor(&graph, GRAPH_INPUT, "x", 1, "4");
  PutTensor(&graph, GRAPH_OUTPUT, "y", 1, "4");
  return Model(&graph, 17);
}
