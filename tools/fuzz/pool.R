# Objects that methods are called on: by class, each as the code that makes it.
# They are made once in a process, from fixed seeds, and each call has a copy of
# its own.

objects <- list(
  kme = alist(
    kme(points(20, 2, 1)), kme(points(15, 1, 2), kernel_rbf(1)),
    kme(points(20, 2, 3), estimator = "skmse"),
    kme(points(20, 2, 4), estimator = "fkmse"),
    kme(points(20, 1, 5), kernel_rbf(1), "fkmse", lambda = 0.5),
    kme(points(20, 2, 6), estimator = "mkme"),
    kme(points(20, 3, 7, form = "frame"), estimator = "mmkme"),
    kme(points(20, 2, 8), estimator = "smooth"),
    kme(points(20, 1, 9), estimator = "stack"),
    kme(points(20, 2, 10), kernel_laplace()),
    kme(points(20, 2, 11), kernel_poly(2)), kme(points(20, 2, 12),
                                                kernel_linear()),
    kme(points(20, 2, 13), kernel_matern(5 / 2)),
    kme(gram(points(15, 2, 14)), estimator = "fkmse"),
    kme(as_gram(diag(12) + 0.5)), kme(points(12, 2, 15), weights = shares(12,
                                                                          15)),
    kme(~ a + b, frame(20, 16)), kme(points(20, 2, 17), scale = TRUE),
    kme(points(20, 2, 18), scale = "whiten"),
    kme(points(20, 2, 19), kernel_function(own_kernel)),
    kme(points(20, 2, 20), kernel_rbf(c(1, 2)), est_function(own_weights)),
    kme(kme_sketch(points(40, 2, 21), 8), estimator = "skmse"),
    kme(points(12, 2, 22), kernel_rbf(1),
        est_skmse(target = kme(points(9, 2, 23), kernel_rbf(1)))),
    kme(points(12, 2, 24), kernel_rbf(1), est_skmse(target = mixture(2))),
    kme(points(1, 2, 25), kernel_rbf(1))
  ),
  kme_confint = alist(
    confint(kme(points(20, 2, 1))), confint(kme(points(20, 1, 1)), level = 0.5),
    confint(kme(points(20, 2, 1)), method = "bound"),
    confint(kme(kme_sketch(points(40, 2, 21), 8)))
  ),
  kme_cov = alist(
    kme_cov(points(15, 2, 1)), kme_cov(points(15, 2, 1), points(15, 1, 2)),
    kme_cov(points(15, 2, 3), estimator = "skmse"),
    kme_cov(points(15, 2, 4), points(15, 1, 4), estimator = "fkmse"),
    kme_cov(list(a = points(12, 1, 5), b = points(12, 1, 6), c = labels(12, 2,
                                                                        7))),
    kme_cov(labels(15, 3, 8), points(15, 2, 8), ncomp = 2),
    kme_cov(a ~ b + h, frame(15, 9)), kme_cov(~ a + b, frame(15, 10)),
    kme_cov(gram(points(15, 2, 11)), estimator = "stack"),
    kme_cov(points(15, 2, 12), center = "skmse", ncomp = 3),
    kme_cov(kme_sketch(points(40, 2, 13), 8)),
    kme_cov(kme_sketch(points(40, 2, 14), 8, y = points(40, 1, 15)))
  ),
  kme_pca = alist(
    kme_pca(points(15, 2, 1)), kme_pca(points(15, 2, 2), kernel_rbf(1),
                                       ncomp = 3),
    kme_pca(points(15, 1, 3), center = "skmse"),
    kme_pca(points(15, 2, 4), covariance = "fkmse", ncomp = 2),
    kme_pca(points(15, 2, 5), kernel_linear()), kme_pca(gram(points(15, 2, 6))),
    kme_pca(as_gram(diag(9) + 0.5)), kme_pca(~ a + b, frame(15, 7)),
    kme_pca(kme_sketch(points(40, 2, 8), 8)),
    kme_pca(points(15, 2, 9), scale = "whiten", ncomp = 1)
  ),
  kme_fda = alist(
    kme_fda(points(20, 2, 1), labels(20, 2, 1)),
    kme_fda(points(20, 2, 2), labels(20, 3, 2), kernel_rbf(1)),
    kme_fda(points(20, 1, 3), labels(20, 2, 3), ridge = 0.1),
    kme_fda(h ~ a + b, frame(21, 4)), kme_fda(gram(points(20, 2, 5)),
                                              labels(20, 2, 5)),
    kme_fda(points(20, 2, 6), labels(20, 3, 6), ridge = "shrinkage"),
    kme_fda(kme_sketch(points(40, 2, 7), 8, groups = labels(40, 2, 7))),
    kme_fda(points(20, 3, 8), labels(20, 3, 8), prior = c(0.2, 0.3, 0.5))
  ),
  kme_density = alist(
    kme_density(points(30, 2, 1), m = 2), kme_density(points(30, 1, 2), m = 2),
    kme_density(points(30, 2, 3), m = 2, shape = "isotropic"),
    kme_density(points(30, 1, 4), m = 3, optimize = "all", nstart = 3,
                steps = 5),
    kme_density(~ a + b, frame(30, 5), m = 2), kme_density(points(20, 2, 6),
                                                           nstart = 2),
    kme_density(gram(points(20, 2, 7), kernel_rbf(1)), m = 2),
    kme_density(points(30, 2, 8), m = 2, scale = FALSE, estimator = "skmse"),
    kme_density(kme_sketch(points(40, 2, 9), 8), m = 2)
  ),
  kme_landmarks = alist(
    kme_landmarks(points(40, 2, 1), 8), kme_landmarks(points(40, 1, 2), 5),
    kme_landmarks(points(40, 2, 3), 8, method = "uniform"),
    kme_landmarks(~ a + b, frame(40, 4), 8),
    kme_landmarks(frame(40, 4)[c("a", "h")], 8), kme_landmarks(labels(40, 3,
                                                                      5)),
    kme_landmarks(points(40, 3, 6), 8, kernel_laplace(), scale = TRUE)
  ),
  kme_sketch = alist(
    kme_sketch(points(40, 2, 1), 8), kme_sketch(points(40, 1, 2), 8,
                                                moments = 1),
    kme_sketch(points(40, 2, 3), 8, groups = labels(40, 2, 3)),
    kme_sketch(points(40, 2, 4), 8, y = points(40, 1, 4)),
    kme_sketch(points(40, 2, 5), 8, weights = shares(40, 5)),
    kme_sketch(points(40, 2, 6), 8, groups = labels(40, 2, 6), bin = 4),
    kme_sketch(~ a + b, frame(40, 7), 8, groups = h),
    kme_sketch(points(40, 2, 8), 8, moments = 4)
  ),
  kme_monitor = alist(
    kme_monitor(daily(16, 1), reference = 12), kme_monitor(daily(9, 2)),
    kme_monitor(daily(5, 3), daily(5, 4)),
    kme_monitor(daily(12, 5), reference = 8, horizon = 9, columns = FALSE)
  ),
  kme_changes = alist(
    kme_changes(daily(24, 1), B = 19), kme_changes(daily(9, 2), B = 9),
    kme_changes(daily(30, 3) + daily(20, 4), B = 19, alpha = 0.9)
  ),
  mmd_test = alist(
    mmd_test(points(15, 2, 1), points(12, 2, 2), B = 19),
    mmd_test(points(15, 1, 3), points(12, 1, 4), B = 19,
             control = test_control(statistic = "unbiased")),
    mmd_test(points(15, 2, 5), points(12, 2, 6), estimator = "skmse", B = 9),
    mmd_test(points(15, 2, 7), points(12, 2, 8),
             control = test_control(null = "spectrum"), B = 19),
    mmd_test(points(15, 2, 9), points(12, 2, 10),
             control = test_control(null = "gamma")),
    mmd_test(points(15, 2, 11), points(12, 2, 12), bandwidths = "fuse", B = 19),
    mmd_test(points(15, 2, 13), points(12, 2, 14), filter = TRUE, B = 19),
    mmd_test(a ~ h, frame(20, 15), B = 19),
    mmd_test(gram(points(20, 2, 16)), labels(20, 2, 16), B = 19),
    mmd_test(dist(points(20, 2, 17)), labels(20, 3, 17), B = 19),
    mmd_test(points(4, 1, 18), points(3, 1, 19),
             control = test_control(permutations = "all")),
    mmd_test(points(12, 2, 20), points(12, 2, 21), blocks = rep(1:12, 2),
             B = 19),
    mmd_test(points(12, 2, 22), points(12, 2, 23), clusters = rep(1:8,
                                                                  each = 3),
             B = 19),
    mmd_test(points(15, 2, 24), points(12, 2, 25), estimator = "fkmse", B = 9),
    mmd_test(kme_sketch(points(40, 2, 26), 8, groups = labels(40, 2, 26)),
             B = 19,
             control = test_control(null = "spectrum"))
  ),
  mmd_gof = alist(
    mmd_gof(points(15, 2, 1), "normal", B = 19),
    mmd_gof(~ a + b, frame(15, 2), mixture(2), kernel = kernel_rbf(1), B = 19),
    mmd_gof(points(15, 1, 3), mixture(1), kernel = kernel_rbf(1), B = 19),
    mmd_gof(points(9, 1, 4), rnorm, kernel = kernel_rbf(1), B = 9)
  ),
  mmd_pairwise = alist(
    mmd_pairwise(a ~ h, frame(20, 1), B = 19),
    mmd_pairwise(cbind(a, b) ~ h, frame(20, 2), reference = "a", B = 19),
    mmd_pairwise(gram(points(20, 2, 3)), labels(20, 3, 3), B = 19),
    mmd_pairwise(dist(points(20, 2, 4)), labels(20, 4, 4), B = 19),
    mmd_pairwise(a ~ h, frame(20, 5), B = 9, filter = TRUE),
    mmd_pairwise(a ~ h, frame(20, 6), control = test_control(null = "gamma")),
    mmd_pairwise(. ~ g, frame(20, 7)[c("a", "b", "g")], reference = "b", B = 19)
  ),
  hsic_test = alist(
    hsic_test(points(15, 2, 1), points(15, 1, 2), B = 19),
    hsic_test(points(15, 1, 3), labels(15, 3, 3), B = 19),
    hsic_test(points(15, 2, 4), points(15, 1, 4),
              control = test_control(null = "gamma")),
    hsic_test(points(15, 2, 5), points(15, 1, 5), estimator = "skmse", B = 9),
    hsic_test(points(15, 2, 6), points(15, 1, 6), filter = TRUE, B = 19),
    hsic_test(points(15, 2, 7), points(15, 1, 7), bandwidths = "fuse", B = 19),
    hsic_test(~ a + b + h, frame(15, 8), B = 19), hsic_test(y ~ a + h,
                                                            frame(15, 9),
                                                            B = 9),
    hsic_test(labels(20, 2, 10), labels(20, 3, 11), B = 19),
    hsic_test(dist(points(15, 2, 12)), points(15, 1, 12), B = 19),
    hsic_test(gram(points(15, 2, 13)), points(15, 1, 13),
              control = test_control(statistic = "unbiased"), B = 19),
    hsic_test(kme_sketch(points(40, 2, 14), 8, y = points(40, 1, 15)), B = 19),
    hsic_test(points(15, 2, 16), points(15, 1, 17), estimator = "smooth", B = 9)
  ),
  bag_gram = alist(
    bag_gram(bags(6, 4, 2, 1)), bag_gram(bags(6, 4, 1, 2), estimator = "skmse"),
    bag_gram(id ~ a + b, bagged(30, 6, 3)),
    bag_gram(points(24, 2, 4), id = rep(1:6, each = 4), level2 = "rbf"),
    bag_gram(bags(6, 4, 2, 5), target = "pooled", estimator = "skmse"),
    bag_gram(bags(6, 4, 2, 6), target = "neighbours", level2 = "cosine"),
    bag_gram(bags(6, 4, 2, 7), estimator = "mmkme", level2 = "laplace"),
    bag_gram(gram(points(24, 2, 8)), id = rep(1:6, each = 4), level2 = "poly"),
    bag_gram(bags(6, 4, 2, 9), estimator = "smooth")
  ),
  bag_smm = alist(
    smm(bags(8, 3, 2, 1), 1:8 / 3, type = "ridge", level2 = "rbf"),
    smm(bags(8, 3, 2, 2), 1:8 / 2, type = "ridge", bandwidth = "median"),
    smm(bags(8, 3, 2, 3), factor(rep(1:2, 4)), cost = 1,
        kernel = kernel_rbf(1)),
    smm(bags(8, 3, 2, 4), 1:8 / 2, cost = 1, kernel = kernel_rbf(1)),
    smm(bags(8, 3, 2, 5), kernel = kernel_rbf(1), nu = 0.5),
    smm(y ~ a + b, bagged(32, 8, 6), id = id, type = "ridge"),
    smm(bag_gram(bags(8, 3, 2, 7)), 1:8 / 2, type = "ridge"),
    smm(bags(9, 3, 2, 8), factor(rep(1:3, 3)), cost = c(1, 10), folds = 3,
        bandwidth = "median")
  ),
  rkhs_iv = alist(
    rkhs_iv(points(24, 1, 1), numbers(24, 2), points(24, 2, 3), mu = 0.1),
    rkhs_iv(points(24, 1, 4), numbers(24, 5), points(24, 1, 6)),
    rkhs_iv(y ~ a + h | c + h, frame(24, 7), mu = 0.1),
    rkhs_iv(y ~ a | b + c, frame(24, 8), penalty = "l2"),
    rkhs_iv(points(24, 1, 9), numbers(24, 9), points(24, 1, 10), mu = 1,
            control = iv_control(landmarks = 8)),
    rkhs_iv(points(24, 1, 11), numbers(24, 11), points(24, 1, 12), mu = 1,
            control = iv_control(features = 9)),
    rkhs_iv(gram(points(20, 1, 13)), numbers(20, 13), gram(points(20, 1, 14)),
            mu = 1),
    rkhs_iv(points(24, 1, 15), numbers(24, 15), points(24, 1, 16),
            preset = "nnpiv")
  ),
  kme_weights = alist(
    kme_weights(l ~ a + b, frame(60, 6)),
    kme_weights(~ a + b, frame(40, 7), target = frame(30, 8), means = FALSE)
  ),
  kme_effect = alist(
    kme_effect(y ~ l, ~ a + b, frame(60, 4)),
    kme_effect(y ~ b, ~ a + h, frame(60, 5))
  ),
  kme_effect_iv = alist(kme_effect(rkhs_iv(y ~ a | c, frame(60, 10)))),
  rkhs_iv_nested = alist(
    rkhs_iv_nested(points(24, 1, 1), points(24, 1, 2), points(24, 1, 3),
                   points(24, 1, 4), numbers(24, 5), mu_g = 1, mu_h = 1),
    rkhs_iv_nested(points(24, 1, 6), points(24, 1, 7), points(24, 1, 8),
                   points(24, 1, 9), numbers(24, 10), subset = rep(0:1, 12)),
    rkhs_iv_nested(points(24, 1, 11), points(24, 1, 12), points(24, 1, 13),
                   points(24, 1, 14), numbers(24, 15), w = shares(24, 1),
                   penalty = "l2", mu_g = 1, mu_h = 1)
  ),
  gram = alist(
    gram(points(12, 2, 1)), gram(points(12, 1, 2), kernel_rbf(1)),
    as_gram(diag(8) + 0.5), gram(points(12, 2, 3), scale = TRUE),
    gram(points(12, 2, 4), kernel_energy()),
    gram(points(12, 3, 5, form = "frame")),
    gram(points(1, 2, 6), kernel_rbf(1)), shrink_gram(gram(points(12, 2, 7))),
    gram(points(12, 2, 8), kernel_function(own_kernel))
  ),
  kernmean_kernel = alist(
    kernel_rbf(), kernel_rbf(2), kernel_rbf(c(1, 2)), kernel_rbf(own_width),
    kernel_laplace(), kernel_laplace(1, "L2"), kernel_matern(),
    kernel_matern(1 / 2, 3),
    kernel_poly(), kernel_poly(3, 0), kernel_linear(), kernel_energy(),
    kernel_function(own_kernel), kme(points(15, 2, 1), scale = TRUE)$kernel
  ),
  test_control = alist(test_control(), test_control(null = "gamma")),
  test_filter = alist(test_filter(), test_filter("iterated", 0.1, 0:1)),
  kernmean_estimator = alist(
    est_kme(), est_skmse(), est_skmse(0.5), est_fkmse(), est_fkmse(0.1),
    est_mkme(),
    est_mmkme(c(0.1, 0.2)), est_smooth(), est_smooth(0.4, 1), est_stack(),
    est_stack(list(est_kme(), est_fkmse(0.1))), est_function(own_weights),
    est_skmse(target = mixture(2)), est_mkme(0)
  ),
  kernmean_sample = alist(
    kme(points(15, 2, 1))$sample, kme_pca(gram(points(15, 2, 6)))$sample,
    kme(as_gram(diag(9) + 0.5))$sample, kme(points(15, 2, 1),
                                            scale = TRUE)$sample,
    mmd_test(points(9, 2, 1), points(8, 2, 2), B = 9)$sample
  )
)

pool <- new.env()

# pool("kme", 3): a copy of the third.
world$pool <- function(class, i) {
  key <- paste(class, i)
  if (is.null(pool[[key]])) {
    set.seed(1L)
    code <- objects[[class]][[i]]
    # No environment goes with formulas and functions but one that is named.
    value <- eval(code, world)
    pool[[key]] <- serialize(value, NULL, refhook = \(e) {
      if (identical(e, world)) "world"
    })
  }
  # Random numbers go on from here, whether it was there or not.
  set.seed(1L)
  unserialize(pool[[key]], refhook = \(name) world)
}

# The classes of what each pool holds, by its first object that can be made. A
# class has the objects of all pools whose classes it is among.
pool_classes <- lapply(objects, \(codes) NULL)
fill_classes <- function() {
  for (name in names(objects)) {
    for (i in seq_along(objects[[name]])) {
      made <- tryCatch(suppressWarnings(world$pool(name, i)),
                       error = \(e) NULL)
      pool_classes[[name]] <<- class(made)
      if (!is.null(made)) break
    }
  }
}
pools_of <- function(class) {
  names(objects)[vapply(pool_classes, \(of) class %in% of, NA)]
}

of_summary <- function(class) sub("^summary[.]", "", class)
has_object <- function(class) length(pools_of(of_summary(class))) > 0L

from_pool <- function(class) {
  if (startsWith(class, "summary.")) {
    return(call("summary", from_pool(of_summary(class))))
  }
  pools <- pools_of(class)
  if (length(pools) == 0L) pools <- "kme"
  name <- any_of(pools)
  call("pool", name, sample.int(length(objects[[name]]), 1L))
}
