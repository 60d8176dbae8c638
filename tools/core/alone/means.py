# Shrinkage weights and a two-sample test from the shared library of the core, without R:
#   python3 means.py libkernmean.so
from ctypes import *
import sys

class Kernel(Structure):
    _fields_ = [("family", c_int), ("degree", c_int), ("offset", c_double),
                ("parts", c_void_p), ("count", c_size_t)]

class Source(Structure):
    _fields_ = [("kernel", Kernel), ("center", c_void_p), ("scale", c_void_p),
                ("x", c_void_p), ("n", c_size_t), ("y", c_void_p), ("m", c_size_t),
                ("d", c_size_t), ("k", c_void_p)]

def generator(state=1):  # Park and Miller
    while True:
        state = state * 16807 % 2147483647
        yield state / 2147483647

core, random = CDLL(sys.argv[1]), generator()
core.km_fold_rows_work.restype = core.km_subset_forms_work.restype = c_size_t
core.km_start()
assert core.km_abi() == 1
doubles = lambda values: (c_double * len(values))(*values)
address = lambda array: cast(array, c_void_p)

m, n, d, count = 40, 100, 2, 200
x = doubles([next(random) + (0 if i % n < m else 0.05) for i in range(n * d)])
center, scale = doubles([0, 0]), doubles([2, 2])  # RBF of bandwidth 1/2
source = byref(Source(Kernel(0), address(center), address(scale), address(x), n, None, n, d))
rows = doubles([0] * n)
core.km_fold_rows(source, rows, (c_double * core.km_fold_rows_work(source))(), None)
rho = sum(rows) / n**2
alpha = min(1, n * (1 - rho) / ((n - 1)**2 * rho + 1 - rho))
print("weight", (1 - alpha) / n)

subsets = (c_uint64 * (-(-n // 64) * count))()
for c in range(count):
    pool = list(range(n))
    for i in range(m):
        j = i + int(next(random) * (n - i)) if c else i
        subsets[pool[j] // 64 * count + c] |= 1 << pool[j] % 64
        pool[j] = pool[i]
sums, forms, sizes = doubles([0] * count), doubles([0] * count), [c_size_t(count), c_size_t(0)]
core.km_subset_sums(subsets, c_size_t(n), sizes[0], rows, c_size_t(1), sums)
work = (c_double * core.km_subset_forms_work(source, *sizes))()
core.km_subset_forms(source, subsets, sizes[0], None, sizes[1], forms, doubles([0, 0]), work, None)
values = [f / m**2 + (sum(rows) - 2 * s + f) / (n - m)**2 - 2 * (s - f) / (m * (n - m))
          for f, s in zip(forms, sums)]
print("statistic", values[0])
least = values[0] - 1e-10 * max(map(abs, values))  # equal but for rounding is as large
print("p.value", sum(v >= least for v in values) / count)
