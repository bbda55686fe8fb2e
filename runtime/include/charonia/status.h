//===- status.h - Errors as values ------------------------------*- C++ -*-===//
//
// Every function of the runtime that can fail returns a Status or a Result<T>.
// Those of Engine and Context that do are noexcept: exhausted memory is a
// Status too. What returns a plain value (a string, a vector) throws
// std::bad_alloc when memory is exhausted, and nothing else. A message is one
// or more sentences for the person who uses the engine: it says what is wrong
// and what would be right.
//
//===----------------------------------------------------------------------===//
#ifndef CHARONIA_STATUS_H
#define CHARONIA_STATUS_H

#include "charonia/export.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace charonia {

/// The values are part of the C ABI (charonia.h) and never change.
enum class StatusCode : int {
  Ok = 0,
  InvalidArgument = 1, ///< A name, type, shape or option that cannot be right.
  OutOfRange = 2,      ///< A shape outside the range the engine was built for.
  NotFound = 3,        ///< No such file, tensor, program or device.
  FailedPrecondition =
      4,            ///< A call in the wrong order: an input is missing, ...
  Unsupported = 5,  ///< Meaningful, but not by this build or machine.
  Corrupt = 6,      ///< The engine file is damaged or was never one.
  Io = 7,           ///< Reading or writing failed; the message has errno.
  OutOfMemory = 8,  ///< Host or device memory is exhausted.
  Unavailable = 9,  ///< No such device here: no GPU, no driver.
  DeviceError = 10, ///< The device's driver reported a failure.
  Internal = 11,    ///< A bug of this library.
};

/// "invalid argument", "out of range", ...
CHARONIA_API std::string_view statusCodeName(StatusCode code);

/// A code and, unless it is Ok, a message.
class [[nodiscard]] Status {
public:
  Status() = default;
  Status(StatusCode code, std::string message)
      : statusCode(code), text(std::move(message)) {}

  static Status ok() { return Status(); }
  bool isOk() const { return statusCode == StatusCode::Ok; }
  explicit operator bool() const { return isOk(); }
  StatusCode code() const { return statusCode; }
  const std::string &message() const { return text; }

  /// The same failure, told with what was being done: "<context>: <message>".
  Status withContext(std::string_view context) const {
    if (isOk())
      return *this;
    return Status(statusCode, std::string(context) + ": " + text);
  }

private:
  StatusCode statusCode = StatusCode::Ok;
  std::string text;
};

namespace detail {
/// Ends the process with a message on stderr: what follows a Result that is not
/// what its user took it for would be memory that nobody wrote.
[[noreturn]] CHARONIA_API void resultMisused(const Status &status) noexcept;
/// The same for what was moved from.
[[noreturn]] CHARONIA_API void movedFromUsed(const char *type) noexcept;
} // namespace detail

/// A value or the Status that explains its absence. Taking the value of an
/// error ends the process, in every build: test with isOk() or `if (result)`
/// first.
template <typename T> class [[nodiscard]] Result {
public:
  Result(T v) : val(std::move(v)) {}
  Result(Status s) : stat(std::move(s)) {
    if (stat.isOk())
      detail::resultMisused(stat);
  }

  bool isOk() const { return val.has_value(); }
  explicit operator bool() const { return isOk(); }
  const Status &status() const { return stat; }

  T &value() & {
    need();
    return *val;
  }
  const T &value() const & {
    need();
    return *val;
  }
  T &&value() && {
    need();
    return *std::move(val);
  }
  T &operator*() & { return value(); }
  const T &operator*() const & { return value(); }
  T &&operator*() && { return std::move(*this).value(); }
  T *operator->() { return &value(); }
  const T *operator->() const { return &value(); }

private:
  void need() const {
    if (!val) [[unlikely]]
      detail::resultMisused(stat);
  }

  std::optional<T> val;
  Status stat;
};

} // namespace charonia

/// Returns from the calling function when the Status expression is an error.
#define CHARONIA_RETURN_IF_ERROR(expr)                                         \
  do {                                                                         \
    if (::charonia::Status charoniaStatus = (expr); !charoniaStatus.isOk())    \
      return charoniaStatus;                                                   \
  } while (false)

#define CHARONIA_CONCAT_(a, b) a##b
#define CHARONIA_CONCAT(a, b) CHARONIA_CONCAT_(a, b)
/// Declares `decl` from a Result expression, or returns its error.
#define CHARONIA_ASSIGN_OR_RETURN(decl, expr)                                  \
  auto CHARONIA_CONCAT(charoniaResult, __LINE__) = (expr);                     \
  if (!CHARONIA_CONCAT(charoniaResult, __LINE__).isOk())                       \
    return CHARONIA_CONCAT(charoniaResult, __LINE__).status();                 \
  decl = *std::move(CHARONIA_CONCAT(charoniaResult, __LINE__))

#endif // CHARONIA_STATUS_H
