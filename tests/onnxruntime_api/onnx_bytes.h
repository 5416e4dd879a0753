/* SPDX-License-Identifier: Apache-2.0 */
/* Makes small ONNX models: messages of protobuf, written field by field. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow. */
typedef struct Bytes {
  unsigned char data[4096];
  size_t size;
} Bytes;

/* Dimensions as text: "2,3", or "N,3" with a name. "" is rank 0. */
void PutNumber(Bytes* to, int field, uint64_t value);
void PutText(Bytes* to, int field, const char* text);
void PutData(Bytes* to, int field, const void* data, size_t size);
void PutBytes(Bytes* to, int field, const Bytes* from);

/* A value's name and its type, a tensor. */
Bytes TensorValue(const char* name, int element_type, const char* dims);
/* Declares an input or output of the graph, or a value inside it. */
void PutTensor(Bytes* graph, int field, const char* name, int type, const char* dims);
/* A node; `inputs` and `outputs` are names with commas between them. */
Bytes Node(const char* op, const char* domain, const char* inputs, const char* outputs);
void PutIntAttribute(Bytes* node, const char* name, int64_t value);
void PutGraphAttribute(Bytes* node, const char* name, const Bytes* graph);
/* A model of a graph, for operator set `opset`, with one entry of metadata. */
Bytes Model(const Bytes* graph, int opset);

/* A Loop of n iterations that takes the sine of v, and adds x to it. */
Bytes LoopModel(void);

/* Fields of a graph. */
enum { GRAPH_NODE = 1, GRAPH_NAME = 2, GRAPH_INITIALIZER = 5, GRAPH_INPUT = 11, GRAPH_OUTPUT = 12 };
