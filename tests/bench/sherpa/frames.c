/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the voice activity detection of sherpa-onnx, by its C interface, on whatever library of ONNX
 * Runtime the process has loaded. sherpa_frames.py compiles it with the header and the library of the
 * published package:
 *
 *   frames MODEL SOUND
 *
 * SOUND is a file of floats, samples at 16 kHz. For each line on its standard input the program goes once
 * through the sound, and prints the microseconds that one frame took and the number of frames with speech.
 */
#include <sherpa-onnx/c-api/c-api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { kFrame = 512, kRate = 16000 };

static double Now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e6 + (double)time.tv_nsec * 1e-3;
}

/* The whole file; ends the process if there is none. */
static float* Read(const char* path, int32_t* count) {
  FILE* const file = fopen(path, "rb");
  float* samples = NULL;
  long size = 0;
  if (file != NULL && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0) {
    rewind(file);
    samples = malloc((size_t)size);
    if (samples != NULL && fread(samples, 1, (size_t)size, file) != (size_t)size) size = 0;
  }
  if (samples == NULL || size <= 0) {
    fprintf(stderr, "frames: %s cannot be read\n", path);
    exit(1);
  }
  fclose(file);
  *count = (int32_t)(size / (long)sizeof(float));
  return samples;
}

int main(int argc, char** argv) {
  SherpaOnnxVadModelConfig config;
  int32_t count = 0;
  char line[16];
  if (argc != 3) {
    fprintf(stderr, "usage: frames MODEL SOUND\n");
    return 2;
  }
  float* const sound = Read(argv[2], &count);
  memset(&config, 0, sizeof config);
  config.silero_vad.model = argv[1];
  config.silero_vad.threshold = 0.3F;
  config.silero_vad.min_silence_duration = 0.25F;
  config.silero_vad.min_speech_duration = 0.05F;
  config.silero_vad.max_speech_duration = 20;
  config.silero_vad.window_size = kFrame;
  config.sample_rate = kRate;
  config.num_threads = 1;
  config.provider = "cpu";
  const SherpaOnnxVoiceActivityDetector* const detector = SherpaOnnxCreateVoiceActivityDetector(&config, 60);
  if (detector == NULL) {
    fprintf(stderr, "frames: no detector of %s\n", argv[1]);
    return 1;
  }
  while (fgets(line, sizeof line, stdin) != NULL) {
    int speech = 0, frames = 0;
    const double begin = Now();
    for (int32_t at = 0; at + kFrame <= count; at += kFrame, ++frames) {
      SherpaOnnxVoiceActivityDetectorAcceptWaveform(detector, sound + at, kFrame);
      speech += SherpaOnnxVoiceActivityDetectorDetected(detector);
    }
    printf("%.3f %d\n", (Now() - begin) / frames, speech);
    fflush(stdout);
    SherpaOnnxVoiceActivityDetectorReset(detector);
    SherpaOnnxVoiceActivityDetectorClear(detector);
  }
  SherpaOnnxDestroyVoiceActivityDetector(detector);
  free(sound);
  return 0;
}
