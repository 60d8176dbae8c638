#include "glue/glue.h"
#include "core/parts.h"
#include "core/subsets.h"

#include <limits.h>
#include <stdint.h>
#include <string.h>

#ifdef __linux__
#include <sys/mman.h>
#endif

/* The border between R and the core: no arithmetic, no loops over data. */

void glue_check(km_status status, const char *routine, int info) {
  if (status == KM_OK) return;
  SEXP namespace = PROTECT(R_FindNamespace(PROTECT(Rf_mkString("kernmean"))));
  SEXP call = PROTECT(Rf_lang4(Rf_install("stop_numeric"), PROTECT(Rf_mkString(routine)),
                               PROTECT(Rf_ScalarInteger((int) status)),
                               PROTECT(Rf_ScalarInteger(info))));
  Rf_eval(call, namespace);
  UNPROTECT(6);
}

void glue_poll(void) { R_CheckUserInterrupt(); }

const double *glue_doubles(SEXP x, R_xlen_t length, const char *name) {
  if (TYPEOF(x) != REALSXP || (length >= 0 && XLENGTH(x) != length))
    Rf_error("internal error: '%s' is not a double vector of the right length", name);
  return REAL_RO(x);
}

const double *glue_matrix(SEXP x, const char *name) {
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x))
    Rf_error("internal error: '%s' is not a double matrix", name);
  return REAL_RO(x);
}

size_t glue_order(SEXP x, const char *name) {
  if (TYPEOF(x) != REALSXP || !Rf_isMatrix(x) || Rf_nrows(x) != Rf_ncols(x) || Rf_nrows(x) < 1)
    Rf_error("internal error: '%s' is not a square double matrix", name);
  return (size_t) Rf_nrows(x);
}

const int *glue_codes(SEXP x, size_t n, int lowest, int highest, const char *name) {
  if (TYPEOF(x) != INTSXP || (size_t) XLENGTH(x) != n)
    Rf_error("internal error: '%s' is not an integer vector of the right length", name);
  if (!km_codes_within(INTEGER_RO(x), n, lowest, highest))
    Rf_error("internal error: a code of '%s'", name);
  return INTEGER_RO(x);
}

km_runs glue_runs(SEXP sizes, SEXP weights, size_t n) {
  const size_t count = (size_t) XLENGTH(sizes);
  const int *each = glue_codes(sizes, count, 0, (int) n, "sizes");
  int *ends = glue_int_scratch(count);
  if (km_run_ends(each, count, ends) != n || count < 1)
    Rf_error("internal error: 'sizes' do not add up to the points");
  return (km_runs){count, ends,
                   Rf_isNull(weights) ? NULL : glue_doubles(weights, (R_xlen_t) n, "weights")};
}

km_blocks glue_find_blocks(SEXP codes, SEXP sizes) {
  const size_t groups = (size_t) XLENGTH(sizes);
  const km_labels of = {.samples = groups,
                        .sizes = glue_codes(sizes, groups, 0, INT_MAX, "sizes")};
  const size_t n = km_label_points(&of);
  return km_find_blocks(Rf_isNull(codes) ? NULL : glue_codes(codes, n, 1, (int) n, "blocks"), n,
                        groups == 2 ? (size_t) of.sizes[0] : 0,
                        glue_int_scratch(km_blocks_iwork(n)));
}

/* Written out: R_unif_index() takes a logarithm for each, half of the time of a permutation. */
size_t glue_draw(size_t count) {
  const uint64_t mask = count < 2 ? 0 : UINT64_MAX >> __builtin_clzll(count - 1);
  uint64_t number;
  do {
    number = (uint64_t) (65536 * unif_rand());
    for (uint64_t more = mask; more >= 65535; more >>= 16)
      number = 65536 * number + (uint64_t) (65536 * unif_rand());
    number &= mask;
  } while (number >= count);
  return (size_t) number;
}

double glue_uniform(void) { return unif_rand(); }

/* The pages of a large new array cost more than its values; large pages are cheaper. */
static void ask_huge_pages(double *x, size_t length) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  const uintptr_t page = 2097152;
  const uintptr_t from = ((uintptr_t) x + page - 1) / page * page;
  const uintptr_t to = (uintptr_t) (x + length) / page * page;
  if (to > from) (void) madvise((void *) from, to - from, MADV_HUGEPAGE);
#else
  (void) x;
  (void) length;
#endif
}

/*
 * A block that is kept between calls, since new pages cost more than what is done on them. While a
 * call uses it, R's stack of transient memory is not empty: the call has set its mark there, which
 * R takes off at its end, be this a return, an error or an interrupt. So whoever finds the stack
 * empty may begin the block anew; the call whose mark is on top, or one that it waits for, goes on
 * behind what was taken; all others get memory of their own.
 */
enum { KEPT = 524288, LINE = 8 }; /* doubles: 4 MB, and those of a cache line */

static double *take_kept(size_t count) {
  static double kept[KEPT] __attribute__((aligned(64)));
  static size_t used = KEPT;
  static void *mark = NULL;
  if (vmaxget() == NULL && count <= KEPT) {
    (void) R_alloc(1, 1);
    mark = vmaxget();
    used = 0;
  } else if (vmaxget() != mark || count > KEPT - used) {
    return NULL;
  }
  double *taken = kept + used;
  used += smaller(KEPT - used, round_up(count, LINE));
  return taken;
}

/* Never NULL, with which a layout tells its size only. */
double *glue_scratch(size_t count) {
#ifndef __SANITIZE_ADDRESS__
  double *taken = take_kept(count);
  if (taken) return taken;
#endif
  double *scratch = (double *) R_alloc(count + 1, sizeof(double));
  ask_huge_pages(scratch, count);
  return scratch;
}

int *glue_int_scratch(size_t count) {
  return (int *) glue_scratch(pieces(count * sizeof(int), sizeof(double)));
}

SEXP glue_new_matrix(size_t rows, size_t columns) {
  if (rows > INT_MAX || columns > INT_MAX)
    Rf_error("internal error: a matrix with more rows or columns than R can count");
  SEXP matrix = Rf_allocMatrix(REALSXP, (int) rows, (int) columns);
  ask_huge_pages(REAL(matrix), rows * columns);
  return matrix;
}

/* The family of this name. */
static km_family find_family(SEXP name) {
  for (size_t family = 0; km_facts(family); family++)
    if (!strcmp(CHAR(name), km_facts(family)->name)) return (km_family) family;
  Rf_error("internal error: no such kernel");
}

/* The parts of a sum: vectors of families, degrees, offsets, columns and times. */
static void unpack_parts(SEXP of, km_source *source) {
  const R_xlen_t count = Rf_xlength(VECTOR_ELT(of, 0));
  km_part *parts = (km_part *) glue_scratch((size_t) count * sizeof *parts / sizeof(double) + 1);
  size_t first = 0;
  for (R_xlen_t p = 0; p < count; p++) {
    parts[p] = (km_part){.kernel = {.family = find_family(STRING_ELT(VECTOR_ELT(of, 0), p)),
                                    .degree = INTEGER_RO(VECTOR_ELT(of, 1))[p],
                                    .offset = REAL_RO(VECTOR_ELT(of, 2))[p]},
                         .first = first,
                         .d = (size_t) INTEGER_RO(VECTOR_ELT(of, 3))[p],
                         .times = REAL_RO(VECTOR_ELT(of, 4))[p]};
    first += parts[p].d;
  }
  if (first != source->d) Rf_error("internal error: 'x' does not have the columns of all parts");
  source->kernel.parts = parts;
  source->kernel.count = (size_t) count;
}

static void unpack_spec(SEXP spec, km_source *source) {
  if (TYPEOF(spec) != VECSXP || XLENGTH(spec) < 5)
    Rf_error("internal error: 'spec' is not a kernel spec");
  const R_xlen_t d = (R_xlen_t) source->d;
  source->kernel = (km_kernel){.family = find_family(Rf_asChar(VECTOR_ELT(spec, 0))),
                               .degree = Rf_asInteger(VECTOR_ELT(spec, 1)),
                               .offset = Rf_asReal(VECTOR_ELT(spec, 2))};
  source->center = glue_doubles(VECTOR_ELT(spec, 3), d, "center");
  source->scale = glue_doubles(VECTOR_ELT(spec, 4), d, "scale");
  if (source->kernel.family == KM_SUM) unpack_parts(VECTOR_ELT(spec, 5), source);
}

static km_source unpack_points(SEXP x, SEXP y) {
  km_source source = {.x = glue_matrix(x, "x"),
                      .n = (size_t) Rf_nrows(x),
                      .m = (size_t) Rf_nrows(x),
                      .d = (size_t) Rf_ncols(x)};
  if (source.n < 1 || source.d < 1) Rf_error("internal error: 'x' is empty");
  if (Rf_isNull(y)) return source;
  source.y = glue_matrix(y, "y");
  source.m = (size_t) Rf_nrows(y);
  if (Rf_ncols(y) != Rf_ncols(x))
    Rf_error("internal error: 'y' does not have the columns of 'x'");
  return source;
}

static km_source unpack_source(SEXP source) {
  if (TYPEOF(source) != VECSXP || XLENGTH(source) != 3)
    Rf_error("internal error: 'source' is not list(spec, x, y)");
  SEXP spec = VECTOR_ELT(source, 0), x = VECTOR_ELT(source, 1), y = VECTOR_ELT(source, 2);
  if (Rf_isNull(spec)) {
    const size_t n = glue_order(x, "x");
    if (!Rf_isNull(y)) Rf_error("internal error: a matrix and 'y'");
    return (km_source){.n = n, .m = n, .k = REAL_RO(x)};
  }
  km_source points = unpack_points(x, y);
  unpack_spec(spec, &points);
  return points;
}

km_source glue_source(SEXP source) {
  const km_source from = unpack_source(source);
  if (from.m < 1) Rf_error("internal error: 'y' is empty");
  return from;
}

km_source glue_landmarks(SEXP source) {
  const km_source from = unpack_source(source);
  if (!from.y) Rf_error("internal error: 'source' is not of landmarks and rows");
  return from;
}

km_source glue_symmetric(SEXP source) {
  const km_source symmetric = glue_source(source);
  if (symmetric.y) Rf_error("internal error: 'source' is not symmetric");
  return symmetric;
}

km_source glue_points(SEXP source) {
  const km_source points = glue_symmetric(source);
  if (!points.x) Rf_error("internal error: 'source' is a matrix, not points");
  return points;
}

km_centering glue_centering(SEXP at, SEXP norm2, size_t n) {
  return (km_centering){glue_doubles(at, (R_xlen_t) n, "at"), Rf_asReal(norm2)};
}
