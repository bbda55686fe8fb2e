#!/usr/bin/env python3
"""Fits the polynomials of codegen/math (needs mpmath).

Prints, for each function and precision, the coefficients from the lowest degree up
and the largest weighted error: minimax fits by Remez exchange, computed with 60 digits.
"""
from mpmath import mp, mpf, exp, expm1, log, log1p, atan, asin, sin, cos, erf, erfc, sqrt, pi, matrix, lu_solve

mp.dps = 60


def remez(f, weight, low, high, degree, rounds=30):
    """Coefficients of p that minimize max |weight(x) (p(x) - f(x))| on [low, high]."""
    n = degree + 2
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * i / (n - 1)) for i in range(n)]
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(pi * i / (40 * n)) for i in range(40 * n + 1)]
    values = [(x, f(x), weight(x)) for x in grid]
    for _ in range(rounds):
        a, b = matrix(n, n), matrix(n, 1)
        for i, x in enumerate(nodes):
            for j in range(degree + 1):
                a[i, j] = x**j
            a[i, degree + 1] = (-1) ** i / weight(x)
            b[i] = f(x)
        solution = lu_solve(a, b)
        c = [solution[j] for j in range(degree + 1)]
        level = abs(solution[degree + 1])
        errors = [w * (sum(k * x**j for j, k in enumerate(c)) - y) for x, y, w in values]
        # The extremum of each run of one sign.
        extrema, best = [], 0
        for i in range(1, len(grid)):
            if (errors[i] > 0) != (errors[best] > 0):
                extrema.append(best)
                best = i
            elif abs(errors[i]) > abs(errors[best]):
                best = i
        extrema.append(best)
        worst = max(abs(e) for e in errors)
        if len(extrema) < n or worst < level * mpf("1.0001"):
            return c, worst
        while len(extrema) > n:
            extrema.pop(0 if abs(errors[extrema[0]]) < abs(errors[extrema[-1]]) else -1)
        nodes = [grid[i] for i in extrema]
    return c, worst


def show(name, f, weight, low, high, degree):
    c, error = remez(f, weight, mpf(low), mpf(high), degree)
    print(f"{name}: error {mp.nstr(error, 3)}")
    print("  " + ", ".join(mp.nstr(k, 18, min_fixed=0, max_fixed=0) for k in c))


tiny = mpf(10) ** -25
at0 = lambda f, x0: (lambda x: f(x if abs(x) > tiny else x0))

half_ln2 = log(2) / 2 * mpf("1.001")
exp_tail = at0(lambda r: (exp(r) - 1 - r) / r**2, mpf(10) ** -15)
for name, degree in (("f32", 4), ("f64", 10)):
    show(f"exp {name}: exp(r) = 1 + r + r^2 P(r)", exp_tail, lambda r: r**2 + mpf(10) ** -20, -half_ln2, half_ln2, degree)

log_tail = at0(lambda f: (log1p(f) - f + f * f / 2) / f**3, mpf(10) ** -12)
show("log f32: log(1 + f) = f - f^2/2 + f^3 P(f)", log_tail, lambda f: f**2 + mpf(10) ** -12,
     sqrt(mpf(1) / 2) - 1, sqrt(mpf(2)) - 1, 8)
log_s = at0(lambda z: (2 * mp.atanh(sqrt(z)) / sqrt(z) - 2) / z, mpf(10) ** -20)
show("log f64: log((1 + s) / (1 - s)) = 2 s + s^3 P(s^2)", log_s, lambda z: z + mpf(10) ** -18, 0,
     mpf("0.02944") * mpf("1.001"), 7)

atan_tail = at0(lambda t: (atan(sqrt(t)) / sqrt(t) - 1) / t, mpf(10) ** -20)
for name, degree in (("f32", 8), ("f64", 21)):
    show(f"atan {name}: atan(x) = x + x^3 P(x^2)", atan_tail, lambda t: t + mpf(10) ** -8, 0, 1, degree)

asin_tail = at0(lambda t: (asin(sqrt(t)) / sqrt(t) - 1) / t, mpf(10) ** -20)
for name, degree in (("f32", 5), ("f64", 13)):
    show(f"asin {name}: asin(x) = x + x^3 P(x^2)", asin_tail, lambda t: t + mpf(10) ** -8, 0, mpf("0.2501"), degree)

quarter = (pi / 4 * mpf("1.001")) ** 2
sin_tail = at0(lambda t: (sin(sqrt(t)) / sqrt(t) - 1) / t, mpf(10) ** -20)
cos_tail = at0(lambda t: (cos(sqrt(t)) - 1 + t / 2) / t**2, mpf(10) ** -15)
for name, degree in (("f32", 3), ("f64", 6)):
    show(f"sin {name}: sin(x) = x + x^3 P(x^2)", sin_tail, lambda t: t + mpf(10) ** -8, 0, quarter, degree)
for name, degree in (("f32", 2), ("f64", 6)):
    show(f"cos {name}: cos(x) = 1 - x^2/2 + x^4 P(x^2)", cos_tail, lambda t: t**2 + mpf(10) ** -8, 0, quarter, degree)

erf_ratio = at0(lambda t: erf(sqrt(t)) / sqrt(t), mpf(10) ** -20)
for name, degree in (("f32", 6), ("f64", 13)):
    show(f"erf {name}: erf(x) = x P(x^2), |x| < 1", erf_ratio, lambda t: mpf(1), 0, mpf("1.01"), degree)
show("erf f32: erf(x) = 1 - exp(-P(x)), 1 <= x <= 4", lambda x: -log(erfc(x)), lambda x: erfc(x), mpf("0.99"), mpf("4.0"), 7)
scaled = lambda t: (lambda x: erfc(x) * exp(x * x))(3 * (1 + t) / (1 - t))
show("erf f64: erfc(x) = exp(-x^2) P((x - 3) / (x + 3)), 1 <= x <= 6", scaled,
     lambda t: exp(-(3 * (1 + t) / (1 - t)) ** 2), mpf(-2) / 4, mpf(3) / 9, 15)
for name, k, high, degree in (("f32", mpf(2), mpf("10.1"), 9), ("f64", mpf(4), mpf("27.3"), 22)):
    def flat(s, k=k):
        x = k * (1 + s) / (1 - s)
        return (1 + 2 * x) * erfc(x) * exp(x * x)

    low = mpf("0.49")
    show(f"erfc {name}: erfc(x) = exp(-x^2) P((x - {k}) / (x + {k})) / (1 + 2 x), 0.5 <= x <= {high}", flat,
         lambda s: 1 / flat(s), (low - k) / (low + k), (high - k) / (high + k), degree)
