// A clock that goes wrong: the calls of the C library that tell the time of day, shifted.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
static long shift(void) { const char *seconds = getenv("CLOCK_SHIFT"); return seconds ? atol(seconds) : 0; }
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int code = real(clock, now);
  if (!code && clock == CLOCK_REALTIME) now->tv_sec += shift();
  return code;
}
int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  struct timespec precise;
  int code = clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return code;
}
time_t time(time_t *place) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  if (place) *place = precise.tv_sec;
  return precise.tv_sec;
}
