/*
 * What R code cannot do itself: a limit on the addresses of this process, and the longest time
 * between two looks of R for interrupts and time limits. R_ProcessEvents() calls
 * R_PolledEvents() before it looks.
 */
#include <Rinternals.h>

#include <execinfo.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

extern void (*R_PolledEvents)(void);

enum { DEEP = 40 };

typedef struct {
  double wall, user;
} moment;

static void (*before)(void) = NULL;
static moment last, gap;
static void *stack[DEEP];
static int depth;

/* KB = 0 lifts it. done: 0 if it holds. */
void limit_addresses(double *kb, int *done) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = *kb > 0 ? (rlim_t) (*kb * 1024) : limit.rlim_max;
  *done = setrlimit(RLIMIT_AS, &limit);
}

/* Two megabytes of stack: the system ends a process whose stack cannot grow below the limit. */
void grow_stack(int *sum) {
  volatile char room[2097152];
  for (size_t i = 0; i < sizeof room; i += 1024) room[i] = 1;
  *sum = room[sizeof room / 2];
}

static moment now(void) {
  struct timespec t;
  struct rusage used;
  clock_gettime(CLOCK_MONOTONIC, &t);
  getrusage(RUSAGE_SELF, &used);
  return (moment){(double) t.tv_sec + 1e-9 * (double) t.tv_nsec,
                  (double) used.ru_utime.tv_sec + 1e-6 * (double) used.ru_utime.tv_usec};
}

static void note(moment t) {
  if (t.wall - last.wall > gap.wall) {
    gap = (moment){t.wall - last.wall, t.user - last.user};
    depth = backtrace(stack, DEEP);
  }
  last = t;
}

static void look(void) {
  note(now());
  before();
}

void polls_begin(void) {
  if (!before) {
    before = R_PolledEvents;
    R_PolledEvents = look;
  }
  gap = (moment){0, 0};
  depth = 0;
  last = now();
}

/* The longest time without a look: seconds that passed, and of all threads' own work in it. */
void polls_end(double *found) {
  note(now());
  found[0] = gap.wall;
  found[1] = gap.user;
}

/* The addresses in the package's library that were on the stack when it ended. */
SEXP polls_stack(void) {
  char **names = backtrace_symbols(stack, depth), address[32];
  SEXP out = PROTECT(Rf_allocVector(STRSXP, depth));
  for (int i = 0; i < depth; i++) {
    const char *plus = strstr(names[i], "kernmean.so(+");
    address[0] = 0;
    if (plus) sscanf(plus + strlen("kernmean.so(+"), "%31[^)]", address);
    SET_STRING_ELT(out, i, Rf_mkChar(address));
  }
  UNPROTECT(1);
  return out;
}
