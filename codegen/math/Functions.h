// Elementary functions as formulas, and the parts that several of them share.
// Private to ExpandMath.cpp, which has their errors in its header. Coefficients
// come from scripts/fit_polynomials.py.
#ifndef CHARONIA_CODEGEN_MATH_FUNCTIONS_H
#define CHARONIA_CODEGEN_MATH_FUNCTIONS_H

#include "codegen/math/Expression.h"
#include "llvm/ADT/APFloat.h"
#include <limits>
#include <optional>

namespace charonia::functions {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kLn2 = 0.69314718055994530942;

// --- Exponentials.

/// exp(x) = 2^n exp(r), |r| <= ln(2)/2.
struct ExpParts {
  Num r, tail;  ///< exp(r) = 1 + r + tail
  Int exponent; ///< Bits whose low ones hold n, for shifting into the exponent
                ///< field.
  Num n;
};
ExpParts expParts(const Num &x);
Num expOf(const Num &x);
Num expm1Of(const Num &x);
Num exp2Of(const Num &x);
Num tanhOf(const Num &x);
Num sinhOf(const Num &x);
Num coshOf(const Num &x);
Num erfOf(const Num &x);
Num erfcOf(const Num &x);

// --- Logarithms.

struct LogParts {
  Num f, e; ///< x = 2^e (1 + f), sqrt(1/2) <= 1 + f < sqrt(2)
};
LogParts logParts(const Num &x);
Num logSpecials(const Num &x, const Num &result);
/// log(1 + f) = f - tail.
Num logTail(const Num &f);

inline constexpr double kLn2High64 = 0x1.62e42fefa3800p-1,
                        kLn2Low64 = 0x1.ef35793c76730p-45;

Num logOf(const Num &x);
Num log2Of(const Num &x);
Num log10Of(const Num &x);
Num log1pOf(const Num &x);
Num asinhOf(const Num &x);
Num acoshOf(const Num &x);
Num atanhOf(const Num &x);

// --- Trigonometric functions.

/// sin(x + quarterTurns * pi/2).
Num sinShifted(const Num &x, int64_t quarterTurns);
Num tanOf(const Num &x);
Num atanOf(const Num &x);
Num asinOf(const Num &x);
Num acosOf(const Num &x);

// --- Powers, quotients, remainders, rounding.

/// x / c, rounded as a division rounds, where |x| is 2^-100 and more (2^-900 of
/// f64); else within 1.5 units of the last place. Nothing where |c| is not
/// between 1 and 2^24.
std::optional<Num> quotientBy(const Num &x, const llvm::APFloat &c);

/// A sum of two numbers, the second of which is the rounding of the first.
struct Pair {
  Num high, low;
};
Pair twoSum(const Num &a, const Num &b);
Num powOf(const Num &x, const Num &y);
Num rsqrtOf(const Num &x);
Num roundOf(const Num &x);
/// Each step subtracts a multiple of y whose factor has few enough bits for the
/// difference to be exact.
Num fmodOf(const Num &x, const Num &y);

} // namespace charonia::functions

#endif
