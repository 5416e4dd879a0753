/* SPDX-License-Identifier: Apache-2.0 */
/* Public header: <rewire/executable_format/state/state_format.h>. */
/* State files: what a program has in its inputs, as bytes (docs/state.md). This header writes and reads them.
 * The VM uses it (VirtualMachine::TrySaveState), and C programs of vm-aot do (compiler/aot/state.h), so both
 * make the same bytes.
 *
 * Plain C99 for systems of any kind: it takes no memory, calls nothing but memcpy, memcmp and strlen, and
 * reads and writes byte by byte where it meets numbers. Elements of tensors are copied as they lie, so the
 * machine must have its lowest byte first.
 *
 * All numbers of a file are little-endian. Zeroes fill each text, and the elements of each tensor, up to a
 * multiple of 8 bytes.
 *
 *   0   8  "RWXSTATE"
 *   8   4  version
 *   12  4  number of tensors
 *   16  8  content hash of the executable (content_hash.h)
 *   24  8  bytes of the whole file
 *   32  4  bytes of the function's name, and 4 zeroes
 *   40     the function's name
 *          each tensor, in the order of the function's inputs:
 *            4    bytes of its name
 *            4    rank
 *            16   dtype as base/dtype.h spells it, such as "f32"; the rest is zero
 *            8    bytes of its elements
 *            8    for each dimension
 *                 its name, then its elements
 *   last 4  XXH32 of all bytes before, with seed 0
 */
#ifndef REWIRE_EXECUTABLE_FORMAT_STATE_STATE_FORMAT_H_
#define REWIRE_EXECUTABLE_FORMAT_STATE_STATE_FORMAT_H_

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __BYTE_ORDER__
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "state files hold elements as they lie in memory: a machine with the lowest byte first is expected"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define REWIRE_STATE_VERSION 1

typedef int32_t RewireStateError;
enum {
  kRewireStateOk = 0,
  kRewireStateNoRoom = 1,        /* the memory that is given is too small */
  kRewireStateForeign = 2,       /* the bytes are no state file */
  kRewireStateNewer = 3,         /* a version that this reader does not know */
  kRewireStateTruncated = 4,     /* bytes are missing at the end */
  kRewireStateDamaged = 5,       /* the checksum is wrong, or what it covers makes no sense */
  kRewireStateOtherProgram = 6,  /* another executable has saved it */
  kRewireStateOtherFunction = 7, /* it is of another function */
  kRewireStateUnknownInput = 8,  /* it has a tensor that is no input, or inputs in another order */
  kRewireStateOtherForm = 9      /* a tensor has another dtype or shape than the input */
};

enum {
  kRewireStateHeaderBytes = 40,
  kRewireStateRecordBytes = 32,
  kRewireStateDTypeBytes = 16,
  kRewireStateMaxRank = 32
};

/* --- numbers and the checksum --- */

static inline uint32_t RewireStateRead32(const unsigned char* from) {
  return (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
}
static inline uint64_t RewireStateRead64(const unsigned char* from) {
  return (uint64_t)RewireStateRead32(from) | (uint64_t)RewireStateRead32(from + 4) << 32;
}
static inline uint32_t RewireStateRotate(uint32_t word, int bits) {
  return word << bits | word >> (32 - bits);
}

/* XXH32 with seed 0, as https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md specifies it. */
static inline uint32_t RewireStateChecksum(const unsigned char* bytes, uint64_t size) {
  const uint32_t primes[5] = {2654435761u, 2246822519u, 3266489917u, 668265263u, 374761393u};
  uint64_t left = size;
  uint32_t hash = primes[4];
  if (left >= 16) {
    uint32_t lanes[4] = {primes[0] + primes[1], primes[1], 0, 0u - primes[0]};
    for (; left >= 16; left -= 16) {
      int i;
      for (i = 0; i < 4; ++i, bytes += 4) {
        lanes[i] = RewireStateRotate(lanes[i] + RewireStateRead32(bytes) * primes[1], 13) * primes[0];
      }
    }
    hash = RewireStateRotate(lanes[0], 1) + RewireStateRotate(lanes[1], 7) + RewireStateRotate(lanes[2], 12) +
           RewireStateRotate(lanes[3], 18);
  }
  hash += (uint32_t)size;
  for (; left >= 4; left -= 4, bytes += 4) {
    hash = RewireStateRotate(hash + RewireStateRead32(bytes) * primes[2], 17) * primes[3];
  }
  for (; left > 0; --left, ++bytes) hash = RewireStateRotate(hash + *bytes * primes[4], 11) * primes[0];
  hash = (hash ^ hash >> 15) * primes[1];
  hash = (hash ^ hash >> 13) * primes[2];
  return hash ^ hash >> 16;
}

/* --- writing --- */

/* The state of a file that is being written. What does not fit is counted and not written, so that a first
 * round without memory tells the size. */
typedef struct RewireStateWriter {
  unsigned char* bytes;
  uint64_t room;
  uint64_t size;
  uint32_t count;
} RewireStateWriter;

static inline void RewireStateWrite(RewireStateWriter* writer, const void* from, uint64_t size) {
  if (size != 0 && writer->size <= writer->room && size <= writer->room - writer->size) {
    memcpy(writer->bytes + writer->size, from, (size_t)size);
  }
  writer->size += size;
}
static inline void RewireStateWriteNumber(RewireStateWriter* writer, uint64_t number, int bytes) {
  unsigned char text[8];
  int i;
  for (i = 0; i < bytes; ++i) text[i] = (unsigned char)(number >> (8 * i) & 0xFFu);
  RewireStateWrite(writer, text, (uint64_t)bytes);
}
/* Fills up to a multiple of 8. */
static inline void RewireStatePad(RewireStateWriter* writer) {
  RewireStateWriteNumber(writer, 0, (int)((8 - writer->size % 8) % 8));
}

/* Begins a file in `room` bytes of memory, which may be null if `room` is 0. */
static inline void RewireStateBegin(RewireStateWriter* writer, void* bytes, uint64_t room, uint64_t program,
                                    const char* function) {
  const uint64_t length = strlen(function);
  writer->bytes = (unsigned char*)bytes;
  writer->room = room;
  writer->size = 0;
  writer->count = 0;
  RewireStateWrite(writer, "RWXSTATE", 8);
  RewireStateWriteNumber(writer, REWIRE_STATE_VERSION, 4);
  RewireStateWriteNumber(writer, 0, 4);
  RewireStateWriteNumber(writer, program, 8);
  RewireStateWriteNumber(writer, 0, 8);
  RewireStateWriteNumber(writer, length, 4);
  RewireStateWriteNumber(writer, 0, 4);
  RewireStateWrite(writer, function, length);
  RewireStatePad(writer);
}

/* Adds a contiguous tensor. Tensors are added in the order of the function's inputs. */
static inline void RewireStateAdd(RewireStateWriter* writer, const char* name, const char* dtype,
                                  uint32_t rank, const int64_t* dims, const void* data, uint64_t data_bytes) {
  const uint64_t length = strlen(name);
  char spelled[kRewireStateDTypeBytes];
  const size_t letters = strlen(dtype);
  uint32_t i;
  memset(spelled, 0, sizeof(spelled));
  memcpy(spelled, dtype, letters < sizeof(spelled) ? letters : sizeof(spelled));
  RewireStateWriteNumber(writer, length, 4);
  RewireStateWriteNumber(writer, rank, 4);
  RewireStateWrite(writer, spelled, sizeof(spelled));
  RewireStateWriteNumber(writer, data_bytes, 8);
  for (i = 0; i < rank; ++i) RewireStateWriteNumber(writer, (uint64_t)dims[i], 8);
  RewireStateWrite(writer, name, length);
  RewireStatePad(writer);
  RewireStateWrite(writer, data, data_bytes);
  RewireStatePad(writer);
  ++writer->count;
}

/* Ends the file. *size is what it takes, also if there was no room: kRewireStateNoRoom. */
static inline RewireStateError RewireStateEnd(RewireStateWriter* writer, uint64_t* size) {
  const uint64_t checked = writer->size;
  RewireStateWriter patch = *writer;
  *size = checked + 4;
  if (*size > writer->room) return kRewireStateNoRoom;
  patch.size = 12;
  RewireStateWriteNumber(&patch, writer->count, 4);
  patch.size = 24;
  RewireStateWriteNumber(&patch, *size, 8);
  RewireStateWriteNumber(writer, RewireStateChecksum(writer->bytes, checked), 4);
  return kRewireStateOk;
}

/* --- reading --- */

/* A tensor of a file. All pointers are into the file. */
typedef struct RewireStateTensor {
  const char* name; /* not terminated */
  uint32_t name_bytes;
  uint32_t rank;
  const char* dtype;         /* 16 bytes, the last one zero */
  const unsigned char* dims; /* RewireStateDim reads them */
  const unsigned char* data;
  uint64_t data_bytes;
} RewireStateTensor;

typedef struct RewireStateReader {
  const unsigned char* bytes;
  uint64_t end; /* of the records */
  uint64_t at;
  uint32_t left; /* tensors that were not read yet */
  uint64_t program;
  const char* function; /* not terminated */
  uint32_t function_bytes;
} RewireStateReader;

static inline int64_t RewireStateDim(const RewireStateTensor* tensor, uint32_t i) {
  int64_t dim;
  const uint64_t bits = RewireStateRead64(tensor->dims + 8 * (size_t)i);
  memcpy(&dim, &bits, sizeof(dim));
  return dim;
}

/* Takes `size` bytes and the zeroes behind them. Null if they are not there, or not zero. */
static inline const unsigned char* RewireStateTake(RewireStateReader* reader, uint64_t size) {
  const unsigned char* const taken = reader->bytes + reader->at;
  if (size > reader->end - reader->at) return NULL;
  reader->at += size;
  for (; reader->at % 8 != 0; ++reader->at) {
    if (reader->at == reader->end || reader->bytes[reader->at] != 0) return NULL;
  }
  return taken;
}

/* True if zeroes, one or more, fill a dtype behind its text. */
static inline int RewireStateIsDType(const char* dtype) {
  int i = 0;
  while (i < kRewireStateDTypeBytes && dtype[i] != '\0') ++i;
  if (i == kRewireStateDTypeBytes) return 0;
  while (i < kRewireStateDTypeBytes && dtype[i] == '\0') ++i;
  return i == kRewireStateDTypeBytes;
}

/* Reads the next tensor: 1. At the end 0; -1 if the bytes make no sense, which RewireStateOpen has excluded.
 */
static inline int RewireStateNext(RewireStateReader* reader, RewireStateTensor* tensor) {
  const unsigned char* record;
  if (reader->left == 0) return reader->at == reader->end ? 0 : -1;
  record = RewireStateTake(reader, kRewireStateRecordBytes);
  if (record == NULL) return -1;
  tensor->name_bytes = RewireStateRead32(record);
  tensor->rank = RewireStateRead32(record + 4);
  tensor->dtype = (const char*)(record + 8);
  tensor->data_bytes = RewireStateRead64(record + 24);
  if (tensor->rank > kRewireStateMaxRank || !RewireStateIsDType(tensor->dtype)) return -1;
  tensor->dims = RewireStateTake(reader, 8 * (uint64_t)tensor->rank);
  if (tensor->dims == NULL) return -1;
  tensor->name = (const char*)RewireStateTake(reader, tensor->name_bytes);
  if (tensor->name == NULL) return -1;
  tensor->data = RewireStateTake(reader, tensor->data_bytes);
  if (tensor->data == NULL) return -1;
  --reader->left;
  return 1;
}

/* Opens a file that lies in memory, and checks all of it but what the tensors mean. The bytes must stay while
 * the reader and its tensors are used. */
static inline RewireStateError RewireStateOpen(RewireStateReader* reader, const void* bytes, uint64_t size) {
  const unsigned char* const file = (const unsigned char*)bytes;
  RewireStateReader walk;
  RewireStateTensor tensor;
  uint64_t stated;
  int next;
  if (size < 12 || memcmp(file, "RWXSTATE", 8) != 0) return kRewireStateForeign;
  if (RewireStateRead32(file + 8) != REWIRE_STATE_VERSION) return kRewireStateNewer;
  if (size < kRewireStateHeaderBytes + 4) return kRewireStateTruncated;
  stated = RewireStateRead64(file + 24);
  if (stated > size) return kRewireStateTruncated;
  if (stated < size || RewireStateChecksum(file, size - 4) != RewireStateRead32(file + size - 4)) {
    return kRewireStateDamaged;
  }
  reader->bytes = file;
  reader->end = size - 4;
  reader->at = kRewireStateHeaderBytes;
  reader->left = RewireStateRead32(file + 12);
  reader->program = RewireStateRead64(file + 16);
  reader->function_bytes = RewireStateRead32(file + 32);
  reader->function = (const char*)RewireStateTake(reader, reader->function_bytes);
  if (RewireStateRead32(file + 36) != 0 || reader->function == NULL) return kRewireStateDamaged;
  walk = *reader;
  do {
    next = RewireStateNext(&walk, &tensor);
  } while (next > 0);
  return next == 0 ? kRewireStateOk : kRewireStateDamaged;
}

/* True if a text of a file is this one. */
static inline int RewireStateIs(const char* text, uint32_t bytes, const char* expected) {
  return strlen(expected) == bytes && memcmp(text, expected, bytes) == 0;
}

#ifdef __cplusplus
}
#endif

#endif /* REWIRE_EXECUTABLE_FORMAT_STATE_STATE_FORMAT_H_ */
