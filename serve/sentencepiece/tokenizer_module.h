/* SPDX-License-Identifier: Apache-2.0
 *
 * The interface of librewire_sentencepiece, which reads tokenizers of SentencePiece.
 *
 * It is a module of its own because Debian's libsentencepiece exports a protobuf 3.14 that is compiled into
 * it. A program with another protobuf, such as that of the ONNX compiler, ends when both meet. So the module
 * alone links libsentencepiece, and generate/tokenizer.cc opens it among symbols of its own. Only types of C
 * pass between the two, and each frees its own memory. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A tokenizer that is open. Immutable; any threads. */
typedef struct RewireTokenizer RewireTokenizer;

/* Takes a result or the reason of a failure: `size` bytes that stay until it returns. It must not throw. */
typedef void (*RewireTokenizerSink)(void* context, const void* data, size_t size);

/* Opens the model of SentencePiece in the file `path`. Null on failure; `reason` has then been called. */
RewireTokenizer* rewire_tokenizer_open(const char* path, RewireTokenizerSink reason, void* context);

/* Gives `tokens` the tokens of a text in UTF-8, as an array of int32_t. Returns 0, or -1 on failure; `reason`
 * has then been called. */
int rewire_tokenizer_encode(const RewireTokenizer* tokenizer, const char* text, size_t size,
                            RewireTokenizerSink tokens, RewireTokenizerSink reason, void* context);

/* Gives `text` the text of `count` tokens, in UTF-8. Tokens that the model does not have are left out, and
 * bytes that are no whole character come as U+FFFD. Returns as rewire_tokenizer_encode does. */
int rewire_tokenizer_decode(const RewireTokenizer* tokenizer, const int64_t* tokens, size_t count,
                            RewireTokenizerSink text, RewireTokenizerSink reason, void* context);

/* Null is allowed. */
void rewire_tokenizer_free(RewireTokenizer* tokenizer);

#ifdef __cplusplus
}
#endif
