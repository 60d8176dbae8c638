#' Results as data frames
#'
#' What fits and tests hold as data frames, by [as.data.frame()] and by the
#' generics `tidy()`, `glance()` and `augment()` of the package generics, which
#' broom and other packages share.
#'
#' The methods are there as soon as generics is loaded, by broom, by a package
#' of the tidyverse or by itself; kernmean needs none of them, and returns plain
#' data frames. As in broom, `tidy()` has a row for each component or term,
#' `glance()` one row, and `augment()` the points, with what the fit says of
#' them in columns that begin with a dot (and row names, where there are any, in
#' `.rownames`). `as.data.frame()` needs no other package. What does not apply
#' is `NA`, and so is what is not one number, as bandwidths by column.
#'
#' \describe{
#'   \item{[kme()]}{`tidy()`: `row` (its name or number) and `weight` of each
#'     point. `glance()`: `nobs`, `estimator` (`NA` for weights of your own),
#'     `select`, `lambda`, `alpha`, `noise`, `h`, `c`, `folds`, `score`,
#'     `reference`, `border`, `norm2`, and what all fits of one sample have:
#'     `kernel` (its formula), `bandwidth`, `scale`. `augment()`: `.weight` (of
#'     the sample) and `.fitted`, the embedding.}
#'   \item{[kme_pca()]}{`tidy()`: as of [stats::prcomp()], by `matrix`: for
#'     `"u"` `row`, `PC`, `value` of the scores; for `"v"` the same of the
#'     weights of the points, `coef()`; for `"d"` `PC`, `std.dev`, `percent`,
#'     `cumulative` (the last two are shares, as they are in broom).
#'     `glance()`: `nobs`, `ncomp`, `rank`, `total`, `explained` (the share of
#'     `total` in the components), `center`, `covariance`, `lambda` of the
#'     operator. `augment()`: the scores, `.fittedPC1`, ...}
#'   \item{[kme_cov()]}{`tidy()`: `component`, `value`, `percent`,
#'     `cumulative`, shares as above (see [summary()][summary.kme_cov]); there
#'     is no row for more than two variables. `glance()`: `nobs`, `variables`,
#'     `estimator`, `select`, `lambda`, `alpha`, `rank`, `trace`, `norm2`.
#'     `augment()`: `.weight`, with `data` of your own.}
#'   \item{[kme_fda()]}{`tidy()`: `class`, `n`, `prior`, `error` (the share of
#'     its points that are put into other classes when left out) and its mean
#'     scores `LD1`, ...; with `matrix = "d"` `LD`, `svd`, `percent`,
#'     `cumulative`, shares of the trace. `glance()`: `nobs`, `classes`, `axes`,
#'     `ridge`, `intensity`, `sigma2`, `error`. `augment()`: `.class`,
#'     `.posterior_` with the name of each class, and the scores `.LD1`, ...; of
#'     the sample class and posterior are those of the points left out (its
#'     scores are of the fit), of `newdata` those of [predict.kme_fda()].}
#'   \item{[kme_density()]}{`tidy()`: `component`, `weight`, `mean`, `sd` of
#'     each in the units of the user, for several columns `mean.` and `sd.` with
#'     the name of each. `glance()`: `nobs`, `m`, `shape`, `logLik`, `df`,
#'     `objective`, `distance`, `estimator`. `augment()`: `.density`.}
#'   \item{[rkhs_iv()], [rkhs_iv_nested()]}{`tidy()`: a row for each `moment`,
#'     `nobs`, the `mean` and the root mean square, `rms`, of its residuals r,
#'     `criterion`, r'Pr/n, `share`, r'Pr/r'r, `lambda`, `mu`; with `matrix =
#'     "weights"` (`term`, g or h), `row`, `weight` of each point; with `"cv"`
#'     the field `cv`. `glance()`: `nobs`, `penalty`, `lambda`, `lambda_c`,
#'     `mu`, `mu_h`, `criterion`, `criterion_c` (of the first and of the second
#'     moment), `rank` of g, `rank_instruments` of its instruments,
#'     `approximation`, `intercept`, and of cross-validation `score`, `folds`,
#'     `border`. `augment()`: `.fitted` and `.resid`; for nested fits
#'     `.fitted_g`, `.fitted_h`, `.resid_first`, `.resid_second`. Its own `data`
#'     are the outcome and all blocks.}
#'   \item{[bag_gram()]}{`tidy()`: its field `shrinkage`, a row for each bag,
#'     with the names in `bag`. `glance()`: `nobs`, the number of bags,
#'     `points`, `estimator`, `target`, `level2`, `bandwidth2`. No
#'     `augment()`.}
#'   \item{[smm()]}{`tidy()`: `machine` (`b/a` of a pair of classes), `term` and
#'     `estimate`: the intercept, then the coefficients of the support bags;
#'     with `matrix = "cv"` the field `cv`. `glance()`: `nobs` bags, `type`,
#'     `classes`, `support` (the number of support bags), `cost`, `nu`,
#'     `epsilon`, `ridge`, `error` in the fit (the share of wrong classes or of
#'     refused bags, the root mean squared error), `score` and `folds` of the
#'     choice, and what `bag_gram()` has. `augment()`, a row for each bag:
#'     `bag`, `n`, `y`, then `.class` and `.decision` (of several machines with
#'     their names) or `.fitted`, `.resid` and, for ridge regression, `.loo`,
#'     the value when left out; `.support`. Its own `data` have a row for each
#'     bag, its `newdata` are as of [predict.bag_smm()], which also tells `id`.}
#'   \item{[mmd_test()], [hsic_test()]}{`tidy()`: one row, `estimate` (the MMD
#'     of two samples with `r.squared`, the kernel R^2; that of several; the
#'     normalized HSIC), `statistic`, `p.value`, what is in the field
#'     `parameter`, `method`, `alternative`. With `pairs = TRUE` a row
#'     for each pair of groups: `group1`, `group2`, `estimate`, the distance of
#'     their kernel means, and `statistic`, its square. `glance()`: `statistic`,
#'     `p.value`, `nobs`, `B`, `null`, `type`, `estimator`, `lambda`, `method`.
#'     `augment()` for `mmd_test()` only: `.group` and, for two samples and one
#'     kernel, `.witness`, the difference of the kernel means (with a filter,
#'     see [plot.mmd_test()]).}
#' }
#'
#' `as.data.frame()` is `augment()` without `data`, with row names as such, for
#' `kme()`, `kme_pca()`, `kme_fda()`, `rkhs_iv()` and `smm()`; the components or
#' bags, as `tidy()`, of `kme_density()` and `bag_gram()`; the pairs of
#' `mmd_test()`, the one row of `hsic_test()`; and of tests with several
#' statistics ([test_filter()]) a row for each.
#'
#' @param x A fit or a test.
#' @param row.names `NULL`, or row names.
#' @param optional,... Must not be given.
#' @section Arguments of augment(): `augment(x, data = NULL, ..., newdata =
#'   NULL)`: `data` is the data frame that the fit was made of, with all its
#'   columns, a row for each point (by default the points themselves, in the
#'   units of the user); `newdata` are new points, as of `predict()`.
#' @return A data frame.
#' @aliases tidy.kme glance.kme augment.kme
#' @aliases tidy.kme_pca glance.kme_pca augment.kme_pca
#' @aliases tidy.kme_cov glance.kme_cov augment.kme_cov
#' @aliases tidy.kme_fda glance.kme_fda augment.kme_fda
#' @aliases tidy.kme_density glance.kme_density augment.kme_density
#' @aliases augment.rkhs_iv
#' @aliases tidy.bag_smm glance.bag_smm augment.bag_smm
#' @aliases tidy.bag_gram glance.bag_gram
#' @aliases tidy.mmd_test glance.mmd_test augment.mmd_test
#' @aliases tidy.hsic_test glance.hsic_test augment.hsic_test
#' @name tidy.kme
#' @examples
#' fit <- kme_fda(Species ~ Petal.Length + Petal.Width, iris)
#' head(as.data.frame(fit))
#' if (requireNamespace("generics", quietly = TRUE)) {
#'   tidy <- generics::tidy
#'   print(tidy(fit))
#'   print(generics::glance(fit))
#'   # Points that would be put into another class
#'   flowers <- generics::augment(fit, iris)
#'   print(flowers[flowers$.class != flowers$Species, 4:6])
#'
#'   test <- mmd_test(cbind(Petal.Length, Petal.Width) ~ Species, iris, B = 99)
#'   print(tidy(test))
#'   tidy(test, pairs = TRUE)
#' }
NULL
