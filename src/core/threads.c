#include "core/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef _WIN32
#include <process.h>
#define getpid _getpid
#else
#include <unistd.h>
#endif
#ifdef __linux__
#include <sys/mman.h>
#include <sys/resource.h>
#endif

/*
 * The limit is the number of processors this process may use, within OMP_NUM_THREADS and
 * OMP_THREAD_LIMIT. A forked child (parallel::mclapply) must not enter a parallel region: GNU
 * OpenMP would wait for threads that exist only in its parent; so it works on one thread.
 */

/*
 * GNU OpenMP ends the process where it cannot start a thread or allocate for it. So under a limit
 * on addresses (ulimit -v) there are several threads only where their stacks and some more fit.
 */

/* On a busy machine whoever waits for a thread to start waits for milliseconds, on an idle one for
   microseconds: work of 0.1 to 0.6 ms is done before. */
static double work_per_thread = 1048576;
enum { MOST = 32 }; /* threads: no loop is cut into more parts */

static int limit = 1;
static int pid_at_load = 0; /* 0: of no process, so that there is one thread */
static double stack = 0; /* bytes of a thread's stack */

static int processors(void) {
#ifdef _OPENMP
  int count = omp_get_num_procs();
  const int wanted = omp_get_max_threads();
  const int most = omp_get_thread_limit();
  if (wanted < count) count = wanted;
  if (most < count) count = most;
  return count < 1 ? 1 : count;
#else
  return 1;
#endif
}

/* Bytes of a size as OMP_STACKSIZE has it, "512 k"; 0 where it is none. */
static double stack_size(const char *name) {
  const char *text = getenv(name);
  if (text == NULL) return 0;
  char *unit = NULL;
  const double size = strtod(text, &unit);
  while (*unit == ' ') unit++;
  const double scale = *unit == 'B' || *unit == 'b'   ? 1
                       : *unit == 'M' || *unit == 'm' ? 1048576
                       : *unit == 'G' || *unit == 'g' ? 1073741824
                                                      : 1024;
  return size > 0 ? size * scale : 0;
}

/* What GNU OpenMP gives a thread: it reads the variables once, when it is loaded. */
static double stack_at_load(void) {
  const double named = stack_size("OMP_STACKSIZE");
  double bytes = named > 0 ? named : stack_size("GOMP_STACKSIZE");
#ifdef __linux__
  struct rlimit stacks;
  const int known = getrlimit(RLIMIT_STACK, &stacks) == 0 && stacks.rlim_cur != RLIM_INFINITY;
  if (known && (double) stacks.rlim_cur > bytes) bytes = (double) stacks.rlim_cur;
#endif
  return bytes > 8388608 ? bytes : 8388608;
}

/* Elsewhere R's package parallel says so: km_set_thread_limit(-1). */
static int was_forked(void) {
  int forked = 0;
#ifdef __linux__
  const unsigned long no_program_since = 0x40; /* PF_FORKNOEXEC among the kernel's flags */
  char line[1024] = "";
  FILE *file = fopen("/proc/self/stat", "r");
  if (file == NULL) return 0;
  const char *name_end = fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
  unsigned long flags = 0;
  if (name_end != NULL && sscanf(name_end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) == 1)
    forked = (flags & no_program_since) != 0;
  (void) fclose(file);
#endif
  return forked;
}

void km_threads_init(void) {
  pid_at_load = was_forked() ? 0 : (int) getpid();
  limit = processors();
  stack = stack_at_load();
}

static int have_room(int threads) {
#if defined(__linux__) && defined(MAP_ANONYMOUS) && defined(MAP_NORESERVE)
  const double more = 16777216;
  struct rlimit addresses;
  if (getrlimit(RLIMIT_AS, &addresses) != 0 || addresses.rlim_cur == RLIM_INFINITY) return 1;
  const double wanted = stack * (threads - 1) + more;
  if (wanted > (double) addresses.rlim_cur) return 0;
  void *room = mmap(NULL, (size_t) wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
  if (room == MAP_FAILED) return 0;
  (void) munmap(room, (size_t) wanted);
#else
  (void) threads;
#endif
  return 1;
}

int km_threads(double work) {
  const int allowed = km_thread_limit(), most = allowed < MOST ? allowed : MOST;
  const double useful = 1 + work / work_per_thread;
  int threads = useful < most ? (int) useful : most;
  while (threads > 1 && !have_room(threads)) threads /= 2;
  return threads;
}

int km_thread_limit(void) { return (int) getpid() == pid_at_load ? limit : 1; }

void km_set_thread_limit(int wanted) {
  if (wanted < 0) pid_at_load = 0;
  limit = wanted < 1 ? processors() : wanted;
}

double km_work_per_thread(void) { return work_per_thread; }

void km_set_work_per_thread(double work) { work_per_thread = work; }
