/*
 * The arithmetic of a tile, written once for a vector of LANES doubles and included by arithmetic.c
 * once an instruction set. Expects VEC, INTS (vector types), LANES, VECTORS (vectors in a row of a
 * patch), TARGET (function attribute), NAME(f) (f with the instruction set's suffix) and
 * the operations SPREAD(a), MADD(a, b, c) = ab + c, LEAST(a, b) = a < b ? a : b, TOTAL(a),
 * SIGNS(a), the sign bits of the lanes, STREAM(to, a), an aligned store past the caches, SUBSET,
 * the vectors in a strip of `subset_forms`, and DOWN, the rows of `block_products`. Where there are
 * masks, ADD_WHERE(bits, sum, a) adds the lanes of a whose bits are set; where there is a lookup in
 * registers, ROOTS(a) is 2^(j/16) for the last four bits j of a, with j taken off from bit 48 on.
 *
 * Why vector types: gcc 12 at -O2 keeps blocks of plain arrays in memory between the loop over
 * features and what follows; the row sums of n = 5,000, d = 20 take 18 ms that way, 13 ms this way.
 */

HELPER VEC NAME(load)(const double *a) {
  VEC v;
  memcpy(&v, a, sizeof v);
  return v;
}

HELPER void NAME(save)(double *a, VEC v) { memcpy(a, &v, sizeof v); }

/* e <- e r + c for each vector of a row of a patch. */
HELPER void NAME(step)(VEC *e, const VEC *r, double c) {
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) e[v] = MADD(e[v], r[v], SPREAD(c));
}

/* x = n log 2 + r, n a multiple of the last place of `shift`; shifted = n + shift. */
HELPER void NAME(reduce)(double shift, const VEC *x, VEC *shifted, VEC *r) {
  UNROLL
  for (size_t v = 0; v < VECTORS; v++)
    shifted[v] = MADD(x[v], SPREAD(0x1.71547652b82fep+0), SPREAD(shift));
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) {
    const VEC n = shifted[v] - SPREAD(shift);
    r[v] = MADD(n, SPREAD(-0x1.62e42feep-1), x[v]);
    r[v] = MADD(n, SPREAD(-0x1.a39ef35793c76p-33), r[v]);
  }
}

/*
 * x <- exp(x) for x <= 0, within 2 ulp; 0 below -708.39 (where results stop being normal) and for
 * NaN. exp(x) = 2^n exp(r), exp(r) = 1 + r + r^2 q(r) with q minimax, and the bits of `shifted` are
 * moved to where they add n to an exponent. Vectors advance side by side: one after the other would
 * wait on the chain of multiply-adds (5.4 us a tile against 3.9).
 */
#ifdef ROOTS
/* n in steps of 1/16, |r| <= log(2) / 32, q of degree 4: a tenth faster than a longer q. */
HELPER void NAME(exp)(VEC *x) {
  VEC shifted[VECTORS], r[VECTORS], e[VECTORS];
  NAME(reduce)(0x1.8p48, x, shifted, r);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) e[v] = SPREAD(0x1.6c14c66408965p-10);
  NAME(step)(e, r, 0x1.11123afa832b3p-7);
  NAME(step)(e, r, 0x1.55555558fea1bp-5);
  NAME(step)(e, r, 0x1.555555548f23fp-3);
  NAME(step)(e, r, 0x1.fffffffffffb8p-2);
  NAME(step)(e, r, 1.0);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) {
    /* power (1 + e r), rounded once: power * (1 + e r) would pass 2 ulp. */
    const VEC power = (VEC) ((INTS) ROOTS(shifted[v]) + ((INTS) shifted[v] << 48));
    const VEC value = MADD(e[v] * r[v], power, power);
    x[v] = (VEC) ((INTS) value & (INTS) (x[v] >= SPREAD(-708.39)));
  }
}
#else
/* n whole, |r| <= log(2) / 2, q of degree 9. */
HELPER void NAME(exp)(VEC *x) {
  VEC shifted[VECTORS], r[VECTORS], e[VECTORS];
  NAME(reduce)(0x1.8p52, x, shifted, r);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) e[v] = SPREAD(0x1.ad7f4517bce8ep-26);
  NAME(step)(e, r, 0x1.28ad9b5830d22p-22);
  NAME(step)(e, r, 0x1.71df25aead149p-19);
  NAME(step)(e, r, 0x1.a01999e29e5e3p-16);
  NAME(step)(e, r, 0x1.a01a012a112f5p-13);
  NAME(step)(e, r, 0x1.6c16c18438964p-10);
  NAME(step)(e, r, 0x1.1111111127d0ap-7);
  NAME(step)(e, r, 0x1.555555555083fp-5);
  NAME(step)(e, r, 0x1.55555555554f9p-3);
  NAME(step)(e, r, 0x1.000000000000ap-1);
  NAME(step)(e, r, 1.0);
  NAME(step)(e, r, 1.0);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) {
    const INTS bits = (INTS) e[v] + ((INTS) shifted[v] << 52);
    x[v] = (VEC) (bits & (INTS) (x[v] >= SPREAD(-708.39)));
  }
}
#endif

/*
 * sqrt(s) for finite s >= 0, within 1 ulp: 1/sqrt(s) from its bits and three Newton steps, then one
 * correction of the root. The vector sqrt of libm is out of reach at -O2 because of errno.
 */
HELPER VEC NAME(sqrt)(VEC s) {
  const INTS tiny = (INTS) (s < SPREAD(0x1p-800));
  const VEC up = (VEC) ((tiny & (INTS) SPREAD(0x1p200)) | (~tiny & (INTS) SPREAD(1.0)));
  const VEC down = (VEC) ((tiny & (INTS) SPREAD(0x1p-100)) | (~tiny & (INTS) SPREAD(1.0)));
  s *= up;
  VEC y = (VEC) (0x5fe6eb50c7b537a9 - ((INTS) s >> 1));
  const VEC half = SPREAD(-0.5) * s;
  for (int step = 0; step < 3; step++) y *= MADD(half * y, y, SPREAD(1.5));
  const VEC root = s * y;
  return MADD(MADD(-root, root, s), SPREAD(0.5) * y, root) * down;
}

/* exp(-c r) (1 + c r + a r^2) at squared distances s, for the Laplace and Matern kernels. */
HELPER void NAME(matern)(double c, double a, VEC *s) {
  VEC factor[VECTORS];
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) {
    /* Beyond 1e8 the value is 0; the bound keeps the factor from Inf, and so from Inf * 0. */
    const VEC near = LEAST(s[v], SPREAD(1e8));
    const VEC r = SPREAD(c) * NAME(sqrt)(near);
    factor[v] = SPREAD(1.0);
    if (c > 1) factor[v] += MADD(SPREAD(a), near, r);
    s[v] = -r;
  }
  NAME(exp)(s);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) s[v] *= factor[v];
}

/* s <- (s + offset)^degree, from the highest binary digit of the degree down. */
HELPER void NAME(power)(const km_kernel *kernel, VEC *s) {
  int highest = 1;
  while (highest <= kernel->degree / 2) highest *= 2;
  for (size_t v = 0; v < VECTORS; v++) {
    const VEC base = s[v] + SPREAD(kernel->offset);
    s[v] = base;
    for (int digit = highest >> 1; digit > 0; digit >>= 1) {
      s[v] *= s[v];
      if (kernel->degree & digit) s[v] *= base;
    }
  }
}

/* Kernel values from what `sum_feature` summed. */
HELPER void NAME(values)(km_family family, const km_kernel *kernel, VEC *s) {
  switch (family) {
  case KM_RBF:
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) s[v] *= SPREAD(-0.5);
    NAME(exp)(s);
    return;
  case KM_LAPLACE_L1:
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) s[v] = -s[v];
    NAME(exp)(s);
    return;
  case KM_LAPLACE_L2: NAME(matern)(1, 0, s); return;
  case KM_MATERN32: NAME(matern)(0x1.bb67ae8584caap+0, 0, s); return;
  case KM_MATERN52: NAME(matern)(0x1.1e3779b97f4a8p+1, 5.0 / 3.0, s); return;
  case KM_POLY: NAME(power)(kernel, s); return;
  case KM_ENERGY:
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) s[v] = -NAME(sqrt)(LEAST(s[v], SPREAD(DBL_MAX)));
    return;
  case KM_SQDIST:
  case KM_L1DIST:
  case KM_SUM: return;
  }
}

/* RBF from inner products: the exponent is x'y - (h_x + h_y); rounding above 0 is cut off. (Of a
   point whose squares overflow it may be no number: the value is 0, as it should be.) */
HELPER void NAME(rbf_values)(double hx, const double *hy, VEC *s) {
  UNROLL
  for (size_t v = 0; v < VECTORS; v++)
    s[v] = LEAST(SPREAD(0.0), s[v] - (SPREAD(hx) + NAME(load)(hy + v * LANES)));
  NAME(exp)(s);
}

/* Adds one feature: a product, a squared difference or an absolute difference. */
HELPER VEC NAME(sum_feature)(km_family family, int products, VEC x, VEC y, VEC sum) {
  if (products) return MADD(x, y, sum);
  const VEC u = x - y;
  if (family == KM_LAPLACE_L1 || family == KM_L1DIST) return sum + (VEC) ((INTS) u & INT64_MAX);
  return MADD(u, u, sum);
}

/* A patch of ROWS x (VECTORS * LANES) entries from features first .. last - 1, in registers. */
HELPER void NAME(patch)(km_family family, int products, const km_kernel *kernel,
                        const km_tile_job *job, size_t i, size_t j, size_t first, size_t last) {
  const size_t d = job->d, wide = job->wide;
  const double *x = job->x.points + i / PACK * PACK * wide + i % PACK;
  const double *y = job->y.points + j / PACK * PACK * wide + j % PACK;
  double *k = job->k + i * KM_TILE_COLS + j;
  VEC sum[ROWS][VECTORS];
  UNROLL
  for (size_t r = 0; r < ROWS; r++)
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) {
      sum[r][v] = SPREAD(0.0);
      if (first > 0) sum[r][v] = NAME(load)(k + r * KM_TILE_COLS + v * LANES);
    }
  for (size_t l = first; l < last; l++) {
    VEC feature[VECTORS];
    UNROLL
    for (size_t v = 0; v < VECTORS; v++) feature[v] = NAME(load)(y + l * PACK + v * LANES);
    UNROLL
    for (size_t r = 0; r < ROWS; r++)
      UNROLL
      for (size_t v = 0; v < VECTORS; v++)
        sum[r][v] = NAME(sum_feature)(family, products, SPREAD(x[l * PACK + r]), feature[v],
                                      sum[r][v]);
  }
  UNROLL
  for (size_t r = 0; r < ROWS; r++) {
    if (last == d && family == KM_RBF && products)
      NAME(rbf_values)(job->x.half_norms[i + r], job->y.half_norms + j, sum[r]);
    else if (last == d)
      NAME(values)(family, kernel, sum[r]);
    UNROLL
    for (size_t v = 0; v < VECTORS; v++)
      NAME(save)(k + r * KM_TILE_COLS + v * LANES, sum[r][v]);
  }
}

/* Adds STRIP vectors to a. */
HELPER void NAME(add_strip)(double *a, const VEC *strip) {
  UNROLL
  for (size_t v = 0; v < STRIP; v++)
    NAME(save)(a + v * LANES, NAME(load)(a + v * LANES) + strip[v]);
}

/* All patches of a tile, features in chunks that leave the second set's points in cache. */
HELPER void NAME(patches)(km_family family, int products, const km_kernel *kernel,
                         const km_tile_job *job) {
  size_t first = 0;
  do {
    const size_t last = smaller(job->d, first + FEATURE_CHUNK);
    for (size_t j = 0; j < job->y.count; j += VECTORS * LANES)
      for (size_t i = 0; i < job->x.count; i += ROWS)
        NAME(patch)(family, products, kernel, job, i, j, first, last);
    first = last;
  } while (first < job->d);
}

static TARGET void NAME(tile)(const km_kernel *kernel, const km_tile_job *job) {
  switch (kernel->family) {
  case KM_RBF:
    if (job->y.half_norms)
      NAME(patches)(KM_RBF, 1, kernel, job);
    else
      NAME(patches)(KM_RBF, 0, kernel, job);
    break;
  case KM_LAPLACE_L1: NAME(patches)(KM_LAPLACE_L1, 0, kernel, job); break;
  case KM_LAPLACE_L2: NAME(patches)(KM_LAPLACE_L2, 0, kernel, job); break;
  case KM_MATERN32: NAME(patches)(KM_MATERN32, 0, kernel, job); break;
  case KM_MATERN52: NAME(patches)(KM_MATERN52, 0, kernel, job); break;
  case KM_POLY: NAME(patches)(KM_POLY, 1, kernel, job); break;
  case KM_ENERGY: NAME(patches)(KM_ENERGY, 0, kernel, job); break;
  case KM_SQDIST: NAME(patches)(KM_SQDIST, 0, kernel, job); break;
  case KM_L1DIST: NAME(patches)(KM_L1DIST, 0, kernel, job); break;
  case KM_SUM: break; /* core/sum.c takes its parts */
  }
  if (job->y.count == KM_TILE_COLS) return;
  for (size_t i = 0; i < job->x.count; i++)
    for (size_t j = job->y.count; j < KM_TILE_COLS; j++) job->k[i * KM_TILE_COLS + j] = 0;
}

/* Summed in the order of `patch`. */
static TARGET void NAME(half_norms)(const double *points, size_t count, size_t d, double *half) {
  for (size_t i = 0; i < count; i += LANES) {
    const double *x = points + i / PACK * PACK * d + i % PACK;
    VEC sum = SPREAD(0.0);
    for (size_t l = 0; l < d; l++) {
      const VEC u = NAME(load)(x + l * PACK);
      sum = MADD(u, u, sum);
    }
    NAME(save)(half + i, SPREAD(0.5) * sum);
  }
}

static TARGET void NAME(sums)(const double *k, size_t ni, double *rows, double *columns) {
  for (size_t j = 0; j < KM_TILE_COLS; j += STRIP * LANES) {
    VEC column[STRIP];
    UNROLL
    for (size_t v = 0; v < STRIP; v++) column[v] = SPREAD(0.0);
    for (size_t i = 0; i < ni; i++) {
      VEC row = SPREAD(0.0);
      UNROLL
      for (size_t v = 0; v < STRIP; v++) {
        const VEC value = NAME(load)(k + i * KM_TILE_COLS + j + v * LANES);
        row += value;
        column[v] += value;
      }
      rows[i] += TOTAL(row);
    }
    if (columns) NAME(add_strip)(columns + j, column);
  }
}

static TARGET void NAME(products)(const double *k, size_t ni, const double *u, const double *v,
                                  double *rows, double *columns) {
  for (size_t j = 0; j < KM_TILE_COLS; j += STRIP * LANES) {
    VEC column[STRIP];
    UNROLL
    for (size_t c = 0; c < STRIP; c++) column[c] = SPREAD(0.0);
    for (size_t i = 0; i < ni; i++) {
      VEC row = SPREAD(0.0);
      const VEC weight = SPREAD(columns ? u[i] : 0.0);
      UNROLL
      for (size_t c = 0; c < STRIP; c++) {
        const VEC value = NAME(load)(k + i * KM_TILE_COLS + j + c * LANES);
        row = MADD(value, NAME(load)(v + j + c * LANES), row);
        column[c] = MADD(value, weight, column[c]);
      }
      rows[i] += TOTAL(row);
    }
    if (columns) NAME(add_strip)(columns + j, column);
  }
}

static TARGET void NAME(add_rows)(const double *k, size_t ni, const double *u, double *columns) {
  for (size_t j = 0; j < KM_TILE_COLS; j += STRIP * LANES) {
    VEC column[STRIP];
    UNROLL
    for (size_t c = 0; c < STRIP; c++) column[c] = NAME(load)(columns + j + c * LANES);
    for (size_t i = 0; i < ni; i++) {
      const VEC weight = SPREAD(u ? u[i] : 1.0);
      UNROLL
      for (size_t c = 0; c < STRIP; c++)
        column[c] = MADD(NAME(load)(k + i * KM_TILE_COLS + j + c * LANES), weight, column[c]);
    }
    UNROLL
    for (size_t c = 0; c < STRIP; c++) NAME(save)(columns + j + c * LANES, column[c]);
  }
}

/*
 * sums (rows x 2 LANES) += a v, where a_il stands at a[i * down + l * along], v: depth x 2 LANES,
 * both by rows. Rows are taken DOWN at a time: there must be room for that.
 */
HELPER void NAME(multiply)(const double *a, size_t down, size_t along, size_t rows, size_t depth,
                           const double *v, double *sums) {
  for (size_t i = 0; i < rows; i += DOWN) {
    double *to = sums + i * 2 * LANES;
    VEC left[DOWN], right[DOWN];
    UNROLL
    for (size_t r = 0; r < DOWN; r++) {
      left[r] = NAME(load)(to + r * 2 * LANES);
      right[r] = NAME(load)(to + r * 2 * LANES + LANES);
    }
    for (size_t l = 0; l < depth; l++) {
      const VEC v_left = NAME(load)(v + l * 2 * LANES);
      const VEC v_right = NAME(load)(v + l * 2 * LANES + LANES);
      UNROLL
      for (size_t r = 0; r < DOWN; r++) {
        const VEC value = SPREAD(a[(i + r) * down + l * along]);
        left[r] = MADD(value, v_left, left[r]);
        right[r] = MADD(value, v_right, right[r]);
      }
    }
    UNROLL
    for (size_t r = 0; r < DOWN; r++) {
      NAME(save)(to + r * 2 * LANES, left[r]);
      NAME(save)(to + r * 2 * LANES + LANES, right[r]);
    }
  }
}

static TARGET void NAME(block_products)(const km_tile *tile, const double *v, double *sums) {
  const size_t width = 2 * LANES;
  NAME(multiply)(tile->k, KM_TILE_COLS, 1, tile->ni, tile->nj, v + tile->j0 * width,
                 sums + tile->i0 * width);
  if (tile->mirrored)
    NAME(multiply)(tile->k, 1, KM_TILE_COLS, tile->nj, tile->ni, v + tile->i0 * width,
                   sums + tile->j0 * width);
}

static TARGET double NAME(form)(const double *k, size_t ni, const double *u, const double *v) {
  VEC sum = SPREAD(0.0);
  for (size_t j = 0; j < KM_TILE_COLS; j += STRIP * LANES) {
    VEC column[STRIP];
    UNROLL
    for (size_t c = 0; c < STRIP; c++) column[c] = SPREAD(0.0);
    for (size_t i = 0; i < ni; i++) {
      const VEC weight = SPREAD(u[i]);
      UNROLL
      for (size_t c = 0; c < STRIP; c++)
        column[c] = MADD(NAME(load)(k + i * KM_TILE_COLS + j + c * LANES), weight, column[c]);
    }
    UNROLL
    for (size_t c = 0; c < STRIP; c++)
      sum = MADD(column[c], NAME(load)(v + j + c * LANES), sum);
  }
  return TOTAL(sum);
}

#ifndef ADD_WHERE
HELPER VEC NAME(add_where)(uint64_t bits, VEC sum, VEC a) {
  INTS mask;
  memcpy(&mask, masks[bits & ((1 << LANES) - 1)], sizeof mask);
  return sum + (VEC) (mask & (INTS) a);
}
#define ADD_WHERE(bits, sum, a) NAME(add_where)(bits, sum, a)
#endif

/* table[p] = the sum of those of 4 rows of k whose bits are set in p, SUBSET vectors each. */
HELPER void NAME(tabulate)(const double *k, double *table) {
  enum { WIDTH = SUBSET * LANES };
  for (size_t v = 0; v < SUBSET; v++) NAME(save)(table + v * LANES, SPREAD(0.0));
  for (size_t pattern = 1; pattern < 16; pattern++) {
    const size_t row = (size_t) __builtin_ctz((unsigned) pattern);
    const double *rest = table + (pattern & (pattern - 1)) * WIDTH;
    UNROLL
    for (size_t v = 0; v < SUBSET; v++)
      NAME(save)(table + pattern * WIDTH + v * LANES,
                 NAME(load)(rest + v * LANES) + NAME(load)(k + row * KM_TILE_COLS + v * LANES));
  }
}

/*
 * The method of the four Russians: sums of columns over the patterns of 4 rows are tabulated, then
 * a set costs 8 table rows and a masked sum for each strip of columns, 36 vector additions for 1024
 * values on AVX-512. A strip's table (32 KB) stays in the L1 cache.
 */
static TARGET void NAME(subset_forms)(const double *k, size_t count, const uint64_t *rows,
                                      unsigned shift, const uint64_t *columns, double times,
                                      double *table, double *sums) {
  enum { WIDTH = SUBSET * LANES, TABLE = 16 * WIDTH };
  for (size_t j = 0; j < KM_TILE_COLS; j += WIDTH) {
    for (size_t four = 0; four < KM_TILE_ROWS / 4; four++)
      NAME(tabulate)(k + four * 4 * KM_TILE_COLS + j, table + four * TABLE);
    for (size_t c = 0; c < count; c++) {
      const uint32_t row = (uint32_t) (rows[c] >> shift);
      const uint64_t column = columns[c] >> j;
      VEC sum[SUBSET];
      UNROLL
      for (size_t v = 0; v < SUBSET; v++)
        sum[v] = NAME(load)(table + (row & 15) * WIDTH + v * LANES);
      UNROLL
      for (size_t four = 1; four < KM_TILE_ROWS / 4; four++) {
        const double *entry = table + four * TABLE + (row >> 4 * four & 15) * WIDTH;
        UNROLL
        for (size_t v = 0; v < SUBSET; v++) sum[v] += NAME(load)(entry + v * LANES);
      }
      VEC total = SPREAD(0.0);
      UNROLL
      for (size_t v = 0; v < SUBSET; v++)
        total = ADD_WHERE(column >> v * LANES, total, sum[v]);
      sums[c] += times * TOTAL(total);
    }
  }
}
#undef ADD_WHERE

/* Four vectors of each sum side by side: one would wait on the chain of additions. */
static TARGET void NAME(moments)(const double *k, size_t ni, double *moments) {
  enum { CHAINS = 4 };
  VEC size[CHAINS], square[CHAINS];
  UNROLL
  for (size_t v = 0; v < CHAINS; v++) size[v] = square[v] = SPREAD(0.0);
  for (size_t i = 0; i < ni * KM_TILE_COLS; i += CHAINS * LANES)
    UNROLL
    for (size_t v = 0; v < CHAINS; v++) {
      const VEC value = NAME(load)(k + i + v * LANES);
      size[v] += (VEC) ((INTS) value & INT64_MAX);
      square[v] = MADD(value, value, square[v]);
    }
  moments[0] += TOTAL((size[0] + size[1]) + (size[2] + size[3]));
  moments[1] += TOTAL((square[0] + square[1]) + (square[2] + square[3]));
}

/* to_i = from_(i step), past the caches if the whole matrix does not fit there. */
HELPER void NAME(put)(const double *from, size_t step, size_t count, int large, double *to) {
  size_t i = 0;
  if (large) {
    for (; i < count && (uintptr_t) (to + i) % sizeof(VEC) > 0; i++) to[i] = from[i * step];
    for (; i + LANES <= count; i += LANES) {
      VEC v = SPREAD(0.0);
      UNROLL
      for (size_t l = 0; l < LANES; l++) v[l] = from[(i + l) * step];
      STREAM(to + i, v);
    }
  }
  for (; i < count; i++) to[i] = from[i * step];
}

static TARGET void NAME(store)(const km_tile *tile, size_t n, int large, double *columns,
                               double *rows) {
  if (rows)
    for (size_t i = 0; i < tile->ni; i++)
      NAME(put)(tile->k + i * KM_TILE_COLS, 1, tile->nj, large, rows + i * n);
  if (columns)
    for (size_t j = 0; j < tile->nj; j++)
      NAME(put)(tile->k + j, KM_TILE_COLS, tile->ni, large, columns + j * n);
}

/* One row of `between`: appends to inside and returns how many. */
HELPER size_t NAME(row_between)(const double *row, size_t count, double low, double high,
                                double *inside, size_t *below) {
  size_t kept = 0, j = 0;
  for (; j + LANES <= count; j += LANES) {
    const VEC v = NAME(load)(row + j);
    *below += (size_t) __builtin_popcount(SIGNS((VEC) (v < SPREAD(low))));
    unsigned in = SIGNS((VEC) ((v >= SPREAD(low)) & (v <= SPREAD(high))));
    for (; in; in &= in - 1) inside[kept++] = row[j + (size_t) __builtin_ctz(in)];
  }
  for (; j < count; j++) {
    *below += row[j] < low;
    if (row[j] >= low && row[j] <= high) inside[kept++] = row[j];
  }
  return kept;
}

static TARGET size_t NAME(between)(const km_tile *tile, double low, double high, double *inside,
                                   size_t *below) {
  size_t kept = 0;
  for (size_t i = 0; i < tile->ni; i++) {
    const size_t row = tile->i0 + i;
    const size_t first = tile->mirrored || row < tile->j0 ? 0 : row + 1 - tile->j0;
    if (first >= tile->nj) continue;
    kept += NAME(row_between)(tile->k + i * KM_TILE_COLS + first, tile->nj - first, low, high,
                              inside + kept, below);
  }
  return kept;
}

/* exp of VECTORS * LANES numbers, NaN of what is none. */
HELPER void NAME(exp_some)(const double *x, double *out) {
  VEC row[VECTORS];
  INTS none[VECTORS];
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) row[v] = NAME(load)(x + v * LANES);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++) none[v] = (INTS) (row[v] != row[v]);
  NAME(exp)(row);
  UNROLL
  for (size_t v = 0; v < VECTORS; v++)
    NAME(save)(out + v * LANES, (VEC) ((INTS) row[v] | none[v]));
}

static TARGET void NAME(exp_all)(const double *x, size_t n, double *out) {
  enum { AT_ONCE = VECTORS * LANES };
  size_t i = 0;
  for (; i + AT_ONCE <= n; i += AT_ONCE) NAME(exp_some)(x + i, out + i);
  if (i == n) return;
  double last[AT_ONCE] = {0};
  memcpy(last, x + i, (n - i) * sizeof *x);
  NAME(exp_some)(last, last);
  memcpy(out + i, last, (n - i) * sizeof *out);
}

static TARGET void NAME(multiply_all)(const double *x, size_t n, double *to) {
  for (size_t i = 0; i < n; i += LANES)
    NAME(save)(to + i, NAME(load)(to + i) * NAME(load)(x + i));
}

static TARGET void NAME(add_all)(double times, const double *x, size_t n, double *to) {
  for (size_t i = 0; i < n; i += LANES)
    NAME(save)(to + i, MADD(SPREAD(times), NAME(load)(x + i), NAME(load)(to + i)));
}

static TARGET void NAME(diagonal)(const km_source *source, size_t first, size_t count,
                                  double *diagonal) {
  enum { AT_ONCE = VECTORS * LANES };
  const size_t n = source->n;
  for (size_t i = 0; i < count; i += AT_ONCE) {
    const size_t some = smaller(AT_ONCE, count - i);
    VEC u[VECTORS] = {0}, sum[VECTORS] = {0};
    for (size_t l = 0; l < source->d; l++) {
      memcpy(u, source->x + first + i + l * n, some * sizeof(double));
      for (size_t v = 0; v < VECTORS; v++) {
        const VEC scaled = (u[v] - SPREAD(source->center[l])) * SPREAD(source->scale[l]);
        sum[v] = MADD(scaled, scaled, sum[v]);
      }
    }
    NAME(power)(&source->kernel, sum);
    memcpy(diagonal + i, sum, some * sizeof *diagonal);
  }
}

/* Two numbers j side by side where one vector holds a row of l: one would wait on its sums. Rows of
   l, in random order, are asked for AHEAD of their use: else half the time is waiting for them. */
static TARGET void NAME(grid_forms)(const double *const *k, const double *const *next,
                                    const double *l, const int *order, size_t m, double *sums) {
  enum { ACROSS = KM_GRID_COLUMNS / LANES, CHAINS = LANES == KM_GRID_COLUMNS ? 2 : 1, AHEAD = 16 };
  VEC sum[CHAINS][KM_GRID_ROWS][ACROSS];
  UNROLL
  for (size_t c = 0; c < CHAINS; c++)
    UNROLL
    for (size_t a = 0; a < KM_GRID_ROWS; a++)
      UNROLL
      for (size_t v = 0; v < ACROSS; v++) sum[c][a][v] = SPREAD(0.0);
  for (size_t j = 0; j + CHAINS <= m; j += CHAINS) {
    if (j % 8 == 0)
      UNROLL
      for (size_t a = 0; a < KM_GRID_ROWS; a++) __builtin_prefetch(next[a] + j);
    UNROLL
    for (size_t c = 0; c < CHAINS; c++) {
      const size_t later = j + c + AHEAD < m ? j + c + AHEAD : j + c;
      __builtin_prefetch(l + (size_t) order[later] * KM_GRID_COLUMNS);
      UNROLL
      for (size_t v = 0; v < ACROSS; v++) {
        const VEC row = NAME(load)(l + (size_t) order[j + c] * KM_GRID_COLUMNS + v * LANES);
        UNROLL
        for (size_t a = 0; a < KM_GRID_ROWS; a++)
          sum[c][a][v] = MADD(SPREAD(k[a][j + c]), row, sum[c][a][v]);
      }
    }
  }
  for (size_t a = 0; a < KM_GRID_ROWS; a++)
    for (size_t v = 0; v < ACROSS; v++) {
      double *to = sums + a * KM_GRID_COLUMNS + v * LANES;
      VEC total = sum[0][a][v];
      for (size_t c = 1; c < CHAINS; c++) total += sum[c][a][v];
      for (size_t j = m - m % CHAINS; j < m; j++)
        total = MADD(SPREAD(k[a][j]),
                     NAME(load)(l + (size_t) order[j] * KM_GRID_COLUMNS + v * LANES), total);
      NAME(save)(to, NAME(load)(to) + total);
    }
}

static const km_arithmetic NAME(arithmetic) = {
    .lanes = LANES,
    .tile = NAME(tile),
    .half_norms = NAME(half_norms),
    .sums = NAME(sums),
    .products = NAME(products),
    .add_rows = NAME(add_rows),
    .block_products = NAME(block_products),
    .form = NAME(form),
    .subset_forms = NAME(subset_forms),
    .moments = NAME(moments),
    .store = NAME(store),
    .between = NAME(between),
    .exp_all = NAME(exp_all),
    .diagonal = NAME(diagonal),
    .grid_forms = NAME(grid_forms),
    .multiply_all = NAME(multiply_all),
    .add_all = NAME(add_all)};

#undef TARGET
#undef NAME
#undef VEC
#undef INTS
#undef LANES
#undef VECTORS
#undef SPREAD
#undef MADD
#undef LEAST
#undef TOTAL
#undef STREAM
#undef SIGNS
#undef SUBSET
#undef DOWN
#undef ROOTS
