#include "apps/bags.h"
#include "apps/density.h"
#include "apps/fda.h"
#include "apps/hsic.h"
#include "apps/interval.h"
#include "apps/noisy.h"
#include "apps/normal.h"
#include "apps/sketch.h"
#include "apps/smooth.h"
#include "core/blocks.h"
#include "core/cholesky.h"
#include "core/small.h"
#include "core/subsets.h"
#include "core/walk.h"
#include "driver.h"

#include <limits.h>

/* What statistics are made of: subsets, permutations, mixtures matched to a kernel mean. */

enum { N = 70, D = 3 };

static const int sizes[] = {20, 25, 25}, sets[] = {1, 0, 0, 1, 1, 0}; /* {1, 3} and {2} */

/* Bits as numbers, subset by subset. */
static void put_subsets(const char *name, const uint64_t *subsets, size_t count) {
  int *members = int_room(N * count);
  for (size_t c = 0; c < count; c++)
    for (size_t i = 0; i < N; i++)
      members[i + c * N] = (int) (subsets[i / 64 * count + c] >> i % 64 & 1);
  put_ints(name, members, N * count);
}

static void subset_sums(void) {
  enum { COUNT = 6, RATES = 2, COLUMNS = 2 };
  const km_labels labels = {3, 2, sizes, sets};
  must(km_label_points(&labels) == N, "the points of all samples");
  const km_blocks all = km_find_blocks(NULL, N, 0, int_room(km_blocks_iwork(N)));
  const km_relabelings drawn = {.observed = 1, .count = 2, .blocks = &all, .draw = draw};
  must(km_relabel_count(&labels, &drawn) == COUNT, "the number of subsets");
  uint64_t *subsets = block(km_subset_words(N, COUNT) * sizeof *subsets);
  set_draws(41);
  km_relabel(&labels, &drawn, subsets, int_room(km_relabel_iwork(N)), poll);
  put_subsets("subsets", subsets, COUNT);
  double *sums = room(COUNT * COLUMNS), *forms = room(COUNT * RATES);
  km_subset_sums(subsets, N, COUNT, inputs(42, N * COLUMNS), COLUMNS, sums);
  put("subset_sums", sums, COUNT * COLUMNS);

  const km_source rbf = points(KM_RBF, 43, N, D), square = points(KM_SQDIST, 43, N, D);
  const double rates[RATES] = {0.1, 2};
  double *moments = room(2 * RATES);
  km_subset_forms(&rbf, subsets, COUNT, NULL, 0, forms, moments,
                  room(km_subset_forms_work(&rbf, COUNT, 0)), poll);
  put("subset_forms", forms, COUNT);
  put("subset_moments", moments, 2);
  km_subset_forms(&square, subsets, COUNT, rates, RATES, forms, moments,
                  room(km_subset_forms_work(&square, COUNT, RATES)), poll);
  put("rate_forms", forms, COUNT * RATES);
  put("rate_moments", moments, 2 * RATES);
}

/* More members than a tile has rows; from points and from their matrix. */
static void small_forms(void) {
  enum { MEMBERS = 40, COUNT = 5 };
  const km_source rbf = points(KM_RBF, 43, N, D), stored = {.k = gram(43, N, D), .n = N, .m = N};
  const km_source *sources[] = {&rbf, &stored};
  int *members = int_room(MEMBERS * COUNT);
  double *forms = room(2 * COUNT);
  for (int c = 0; c < COUNT; c++)
    for (int i = 0; i < MEMBERS; i++) members[i + c * MEMBERS] = (i * 3 + c) % N + 1;
  for (size_t i = 0; i < 2; i++)
    km_small_forms(sources[i], members, MEMBERS, COUNT, forms + i * COUNT,
                   room(km_small_forms_work(sources[i], MEMBERS)), poll);
  put("small_forms", forms, 2 * COUNT);
}

static void block_sums(void) {
  enum { BLOCKS = 3, OTHERS = 2, POINTS = 90 };
  static const int others[OTHERS] = {62, 28};
  const km_source rbf = points(KM_RBF, 43, N, D);
  km_source both = rbf;
  both.y = inputs(55, POINTS * D);
  both.m = POINTS;
  int *ends = int_room(BLOCKS), *other_ends = int_room(OTHERS);
  static const int many[OTHERS] = {INT_MAX, INT_MAX};
  must(km_run_ends(many, OTHERS, other_ends) == 2 * (size_t) INT_MAX, "more points than an int");
  must(km_run_ends(sizes, BLOCKS, ends) == N, "the points of all blocks");
  km_run_ends(others, OTHERS, other_ends);
  const km_runs rows = {BLOCKS, ends, inputs(44, N)};
  const km_runs columns = {OTHERS, other_ends, inputs(56, POINTS)};
  must(km_run_start(&rows, 2) == 45 && km_run_size(&rows, 2) == 25, "the points of a block");
  must(km_run_of(&rows, 0) == 0 && km_run_of(&rows, 44) == 1 && km_run_of(&rows, 45) == 2 &&
         km_run_of(&rows, N - 1) == BLOCKS - 1,
       "the block of a point");
  must(km_walk_workers(&rbf) >= 1 && km_walk_workers(&rbf) <= KM_WORKERS, "the slots of a walk");
  const km_walk_part part = km_walk_part_of(&both, KM_WORKERS, KM_WORKERS - 1);
  must(part.i1 == N && part.j1 == POINTS, "the share of the last worker");
  double *sums = room(BLOCKS * BLOCKS), *moments = room(2);
  km_block_sums(&rbf, &rows, NULL, sums, moments, room(km_block_sums_work(&rbf, &rows, NULL)),
                poll);
  put("block_sums", sums, BLOCKS * BLOCKS);
  put("block_moments", moments, 2);
  double *of_rows = room(N * BLOCKS);
  km_block_rows(&rbf, &rows, of_rows, room(km_block_rows_work(&rbf)), poll);
  put("block_rows", of_rows, N * BLOCKS);
  km_block_sums(&both, &rows, &columns, sums, moments,
                room(km_block_sums_work(&both, &rows, &columns)), poll);
  put("other_block_sums", sums, BLOCKS * OTHERS);
  put("other_block_moments", moments, 2);
}

static void bags(void) {
  enum { BAGS = 3 };
  const km_source rbf = points(KM_RBF, 43, N, D);
  int *ends = int_room(BAGS), *border = int_room(BAGS);
  km_run_ends(sizes, BAGS, ends);
  const km_runs each = {BAGS, ends, NULL};
  /* lambda, minimum, reference and norm2, one after the other. */
  double *weights = room(N), *of_bags = room(4 * BAGS), *inner = room(BAGS * BAGS);
  const km_flexible out = {weights, of_bags, of_bags + BAGS, of_bags + 2 * BAGS,
                           of_bags + 3 * BAGS, border};
  must(km_bag_flexible(&rbf, &each, NULL, &out, room(km_bag_flexible_work(&rbf, &each)),
                       int_room(km_bag_flexible_iwork(&rbf, &each)), poll) == KM_OK,
       "no weights of bags");
  put("bag_weights", weights, N);
  put("bag_fits", of_bags, 4 * BAGS);
  put_ints("bag_border", border, BAGS);

  double *noise = inputs(57, BAGS * D);
  for (size_t i = 0; i < BAGS * D; i++) noise[i] = 1 + noise[i];
  km_bag_marginal(&rbf, &each, noise, NULL, NULL, inner, room(km_bag_marginal_work(&rbf)), poll);
  put("bag_marginal", inner, BAGS * BAGS);
}

/* More rows than a panel has. */
static void sketches(void) {
  enum { LANDMARKS = 30, OTHERS = 26, ROWS = 2100, BINS = 4 };
  static const int bin_sizes[BINS] = {50, 0, 2000, 50};
  km_source from = points(KM_RBF, 43, LANDMARKS, D), with = points(KM_LAPLACE_L1, 55, OTHERS, D);
  from.y = inputs(64, ROWS * D);
  with.y = inputs(65, ROWS * D);
  from.m = with.m = ROWS;
  int *ends = int_room(BINS);
  km_run_ends(bin_sizes, BINS, ends);
  const double *weights = inputs(66, ROWS);
  const km_runs bins = {BINS, ends, weights};
  double *first = room(LANDMARKS), *second = room(LANDMARKS * LANDMARKS);
  double *cross = room(LANDMARKS * OTHERS), *sums = room(LANDMARKS * BINS);
  km_sketch_sums(&from, weights, first, second, room(km_sketch_sums_work(&from, 1, 1)), poll);
  put("sketch_first", first, LANDMARKS);
  put("sketch_second", second, LANDMARKS * LANDMARKS);
  km_sketch_cross(&from, &with, weights, cross, room(km_sketch_cross_work(&from, &with)), poll);
  put("sketch_cross", cross, LANDMARKS * OTHERS);
  km_sketch_bins(&from, &bins, sums, room(km_sketch_bins_work(&from)), poll);
  put("sketch_bins", sums, LANDMARKS * BINS);
}

/* For each part a matrix AA', but 0 for the second. */
static double *covariances(int seed, size_t parts) {
  const double *a = inputs(seed, D * D * parts);
  double *out = room(D * D * parts);
  for (size_t part = 0; part < parts; part++)
    for (size_t i = 0; i < D; i++)
      for (size_t j = 0; j < D; j++) {
        const double *own = a + part * D * D;
        double sum = 0;
        for (size_t k = 0; k < D; k++) sum += own[i + k * D] * own[j + k * D];
        out[part * D * D + i + j * D] = part == 1 ? 0 : sum;
      }
  return out;
}

static void noisy_parts(void) {
  enum { PARTS = 3, OTHERS = 2, POINTS = 90 };
  static const int others[OTHERS] = {62, 28};
  int *ends = int_room(PARTS), *other_ends = int_room(OTHERS);
  km_run_ends(sizes, PARTS, ends);
  km_run_ends(others, OTHERS, other_ends);
  const km_noisy rows = {inputs(43, N * D), N, {PARTS, ends, inputs(44, N)},
                         covariances(58, PARTS)};
  const km_noisy columns = {inputs(55, POINTS * D), POINTS, {OTHERS, other_ends,
                            inputs(56, POINTS)}, covariances(59, OTHERS)};
  double *inner = room(PARTS * PARTS);
  must(km_noisy_inner(D, &rows, NULL, inner, room(km_noisy_inner_work(D, &rows, NULL)),
                      int_room(km_noisy_inner_iwork(&rows, NULL)), poll) == KM_OK &&
         inner[1] == inner[PARTS], "no symmetric inner products of noisy points");
  put("noisy", inner, PARTS * PARTS);
  must(km_noisy_inner(D, &rows, &columns, inner, room(km_noisy_inner_work(D, &rows, &columns)),
                      int_room(km_noisy_inner_iwork(&rows, &columns)), poll) == KM_OK,
       "no inner products of noisy points");
  put("other_noisy", inner, PARTS * OTHERS);
}

/* 150 points: two panels; the last column is 0 but for the points of fold 2. */
static void smoothing(void) {
  enum { POINTS = 150, FOLDS = 5, GRID = 3, OTHERS = 2 };
  static const int lost[D] = {0, 0, 2}, unseen[FOLDS + 1] = {2, 0, 0, 1, 0, 0};
  const double grid[GRID] = {0, 0.3, 1};
  double *x = inputs(60, POINTS * D), *weights = inputs(61, POINTS * OTHERS * FOLDS);
  int *fold = int_room(POINTS);
  for (size_t i = 0; i < POINTS; i++) {
    fold[i] = (int) (i % FOLDS) + 1;
    if (fold[i] != lost[D - 1]) x[i + (D - 1) * POINTS] = 0;
    for (size_t c = 0; c < OTHERS; c++)
      weights[i + (c + (i % FOLDS) * OTHERS) * POINTS] = 0;
  }
  double at[GRID * POINTS], norms[GRID * GRID * FOLDS], cross[GRID * OTHERS * FOLDS];
  const km_smooth_sums out = {at, norms, cross};
  km_smooth_job job = {.n = POINTS, .p = D, .folds = FOLDS, .x = x, .fold = fold, .lost = lost,
                       .unseen = unseen, .h_count = GRID, .h = grid};
  must(km_smooth_folds(&job, &out, room(km_smooth_folds_work(&job)), poll) == KM_OK,
       "no smoothing");
  put("smooth_at", at, GRID * POINTS);
  put("smooth_norms", norms, GRID * FOLDS);
  job.others = OTHERS;
  job.weights = weights;
  job.pairs = 1;
  must(km_smooth_folds(&job, &out, room(km_smooth_folds_work(&job)), poll) == KM_OK,
       "no smoothing with others");
  put("smooth_pairs", norms, GRID * GRID * FOLDS);
  put("smooth_cross", cross, GRID * OTHERS * FOLDS);
}

/* Three columns of 150 values, from one of which a row is left out. */
static void intervals(void) {
  enum { VALUES = 150, COLUMNS = 3 };
  double *values = inputs(62, VALUES * COLUMNS), ends[COLUMNS];
  const int left_out[COLUMNS] = {0, 40, VALUES};
  for (size_t i = 0; i < VALUES * COLUMNS; i++) values[i] *= values[i];
  km_lower_ends(VALUES, COLUMNS, values, left_out, 0.05, ends, poll);
  put("lower_ends", ends, COLUMNS);
}

static void independence(void) {
  enum { COUNT = 6, VARIABLES = 3, SIX = 6, NINE = 9, RANK_A = 4, RANK_B = 3 };
  const km_blocks all = km_find_blocks(NULL, N, 0, int_room(km_blocks_iwork(N)));
  int *drawn = int_room(N * COUNT), *order = int_room(N * COUNT), *inverse = int_room(N * COUNT);
  set_draws(45);
  km_draw_permutations(&all, COUNT, draw, drawn, poll);
  put_ints("relabeled", drawn, N * COUNT);
  km_invert(drawn, N, COUNT, order, inverse);
  const km_permutations permutations = {N, COUNT, order, inverse};
  const double *k[VARIABLES] = {gram(46, N, D), gram(47, N, D), gram(48, N, D)};
  const double *rows[VARIABLES] = {inputs(46, N), inputs(47, N), inputs(48, N)};
  double forms[COUNT], sums[COUNT], grid[COUNT * SIX * NINE];
  km_permuted_forms(k[0], k[1], &permutations, forms, room(km_permuted_forms_work(COUNT)), poll);
  put("permuted_forms", forms, COUNT);
  /* More matrices than one panel of either side has. */
  const double *left[SIX], *right[NINE];
  for (size_t l = 0; l < SIX; l++) left[l] = k[l % VARIABLES];
  for (size_t l = 0; l < NINE; l++) right[l] = k[l / VARIABLES];
  km_permuted_grid(left, SIX, right, NINE, &permutations, grid,
                   room(km_permuted_grid_work(N, COUNT)), poll);
  put("permuted_grid", grid, COUNT * SIX * NINE);
  km_permuted_products(inputs(49, N * RANK_A), RANK_A, inputs(50, N * RANK_B), RANK_B,
                       &permutations, forms, room(km_permuted_products_work(N, RANK_A, RANK_B)),
                       poll);
  put("permuted_products", forms, COUNT);
  km_permuted_sums(rows[0], rows[1], &permutations, sums);
  put("permuted_sums", sums, COUNT);
  km_permuted_tensor(VARIABLES, k, rows, &permutations, forms, sums,
                     room(km_permuted_tensor_work(COUNT / (VARIABLES - 1))), poll);
  put("tensor_forms", forms, COUNT / (VARIABLES - 1));
  put("tensor_sums", sums, COUNT / (VARIABLES - 1));
}

/* 300 points: chunks of several workers. */
static void matching(void) {
  enum { POINTS = 300, COMPONENTS = 2, FREE = COMPONENTS * (D + 2) };
  const double shares[] = {0.3, 0.7}, variances[] = {0.2, 0.5};
  const double noise[2][D] = {{0, 0.1, 0.2}, {0}};
  const km_family family[] = {KM_RBF, KM_POLY};
  const char *const names[] = {"match", "match_poly"};
  double *weights = inputs(51, POINTS), *means = inputs(52, COMPONENTS * D);
  for (size_t i = 0; i < POINTS; i++) weights[i] = (1 + weights[i]) / POINTS;
  for (int i = 0; i < 2; i++) {
    const km_source source = points(family[i], 53, POINTS, D);
    const km_estimate estimate = {&source, weights, noise[i], KM_ALL_TERMS};
    const km_mixture mixture = {COMPONENTS, D, shares, means, variances};
    /* J, g, gram, and the derivatives, one after the other. */
    double out[1 + 2 * COMPONENTS + COMPONENTS * COMPONENTS + COMPONENTS * D + COMPONENTS];
    double *to_weights = out + 1 + COMPONENTS + COMPONENTS * COMPONENTS;
    const km_matching parts = {out + 1, out + 1 + COMPONENTS, to_weights, to_weights + COMPONENTS,
                               to_weights + COMPONENTS + COMPONENTS * D};
    out[0] = km_match(&estimate, &mixture, &parts, room(km_match_work(&mixture, &estimate)));
    put(names[i], out, sizeof out / sizeof *out);
  }
  const km_source source = points(KM_RBF, 53, POINTS, D);
  const km_mixture shape = {.m = COMPONENTS, .d = D};
  const km_match_terms terms[] = {KM_ALL_TERMS, KM_CROSS_TERMS};
  const char *const free_names[] = {"match_free", "match_free_cross"};
  for (int i = 0; i < 2; i++) {
    const km_estimate estimate = {&source, weights, noise[0], terms[i]};
    double *u = inputs(54, FREE), gradient[1 + FREE];
    gradient[0] = km_match_free(&estimate, &shape, u, gradient + 1,
                                room(km_match_free_work(&shape, &estimate)));
    put(free_names[i], gradient, 1 + FREE);
  }
}

static void discriminants(void) {
  enum { CLASSES = 3 };
  static const char *names[] = {"fda_left_out", "fda_without_scatter"};
  int *of = int_room(N), info;
  double *k = gram(43, N, D), counts[CLASSES] = {0}, overall[N] = {0};
  double *m = room(N * CLASSES), *within = room(N * N), *scatter = room(N * N);
  double *factor = room(N * N), *distances = room(N * CLASSES);
  for (size_t i = 0; i < N; i++) of[i] = (int) (i * i % 7 % CLASSES) + 1;
  for (size_t i = 0; i < N; i++) counts[of[i] - 1]++;
  for (size_t a = 0; a < N * CLASSES; a++) m[a] = 0;
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) {
      m[i + (size_t) (of[j] - 1) * N] += k[i + j * N] / counts[of[j] - 1];
      overall[i] += k[i + j * N] / N;
    }
  for (size_t i = 0; i < N; i++) {
    for (size_t c = 0; c < CLASSES; c++) m[i + c * N] -= overall[i];
    for (size_t j = 0; j < N; j++)
      within[i + j * N] = k[i + j * N] - overall[i] - m[i + (size_t) (of[j] - 1) * N];
  }
  for (size_t i = 0; i < N; i++)
    for (size_t j = 0; j < N; j++) {
      scatter[i + j * N] = 0;
      for (size_t l = 0; l < N; l++)
        scatter[i + j * N] += within[i + l * N] * within[j + l * N];
    }
  km_factor(N, scatter, 0.3, factor, room(km_factor_work(N)), &info, poll);
  for (size_t i = 0; i < 2; i++) {
    const km_fda_fit fit = {N, CLASSES, of, counts, m, within, i == 0 ? factor : NULL};
    km_fda_left_out(&fit, distances, room(km_fda_left_out_work(&fit)), poll);
    put(names[i], distances, N * CLASSES);
  }
}

/* What normality is tested by, of the points in two columns; each lane has them, turned on by as
   many points as its number. */
static void standardized(void) {
  const double *z = inputs(57, 2 * N);
  double *side = room(2 * N * KM_NORMAL_LANES), *means = room(2 * KM_NORMAL_LANES);
  for (size_t i = 0; i < 2 * N; i++)
    for (size_t e = 0; e < KM_NORMAL_LANES; e++)
      side[i * KM_NORMAL_LANES + e] = z[i / N * N + (i % N + e) % N];
  km_standardized_means(N, 2, 0.7, side, means);
  put("normal_means", means, 2 * KM_NORMAL_LANES);
}

void run_statistics(void) {
  subset_sums();
  small_forms();
  block_sums();
  bags();
  noisy_parts();
  sketches();
  smoothing();
  intervals();
  discriminants();
  independence();
  matching();
  standardized();
}
