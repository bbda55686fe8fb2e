// What values of options may be. Each check gives the message of a usage error;
// none shows in the help.
#ifndef CHARONIA_TOOLS_CHARONIA_CHECKS_H
#define CHARONIA_TOOLS_CHARONIA_CHECKS_H

#include <CLI/CLI.hpp>

namespace charonia::tool {

/// "a, b, c".
std::string joined(const std::vector<std::string> &parts);

/// `test` gives what is wrong with a text, or an empty string.
CLI::Validator check(std::function<std::string(const std::string &)> test);
/// One of `names`, each of them a `what`.
CLI::Validator oneOf(const char *what, std::vector<std::string> names);
/// Such names with commas between them.
CLI::Validator listOf(const char *what, std::vector<std::string> names);
/// Any names with commas between them, none empty.
CLI::Validator listOfNames();
/// The parts between commas; empty ones too.
std::vector<std::string> splitList(const std::string &list);
/// Not empty, as the value of a shell's variable may be that is not set.
CLI::Validator given();
CLI::Validator count(unsigned least, unsigned most);
/// From 0 to a day.
CLI::Validator seconds();
/// A finite number above 0.
CLI::Validator positive();
/// From a page of memory to more than a machine has: a limit in bytes is a
/// mistake.
CLI::Validator megabytes();
/// "auto", or the name of a device.
CLI::Validator device();
/// 1x3x224x224, perhaps behind NAME=; names may hold '=', shapes may not.
CLI::Validator shape();
/// Throws if two of the values of an option NAME=VALUE are of one name,
/// whatever names there are: what precedes the last '=' is the same.
void requireDistinctNames(const char *option,
                          const std::vector<std::string> &values);
/// A number of 64 bits without a sign.
CLI::Validator seed();
CLI::Validator sha256();

} // namespace charonia::tool

#endif
