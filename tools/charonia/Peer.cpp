#include "tools/charonia/Peer.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace charonia::tool {
namespace {

namespace fs = std::filesystem;

/// Where the program lies: bin/ of an installation or build/<preset>/bin.
fs::path programFolder() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path();
}

Result<std::string> findScript() {
  fs::path bin = programFolder();
  std::vector<fs::path> places{bin / "../share/charonia/scripts/peer.py",
                               bin / "../../../scripts/peer.py"};
  if (const char *named = std::getenv("CHARONIA_PEER"))
    places.insert(places.begin(), named);
  std::error_code error;
  for (const fs::path &place : places)
    if (fs::exists(place, error))
      return fs::canonical(place, error).string();
  return Status(StatusCode::NotFound,
                "scripts/peer.py is not beside this program; the environment "
                "variable CHARONIA_PEER can name it");
}

std::string findPython(const std::string &named) {
  if (!named.empty())
    return named;
  if (const char *variable = std::getenv("CHARONIA_PYTHON"))
    return variable;
  std::error_code error;
  fs::path own = programFolder() / "../../venv/bin/python";
  return fs::exists(own, error) ? own.lexically_normal().string() : "python3";
}

} // namespace

Peer::~Peer() {
  if (input >= 0)
    close(input);
  if (output)
    std::fclose(output);
  if (child > 0)
    waitpid(child, nullptr, 0);
}

Status Peer::start(const std::string &python,
                   const std::vector<std::string> &arguments) {
  CHARONIA_ASSIGN_OR_RETURN(std::string script, findScript());
  std::vector<std::string> words{findPython(python), script};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char *> argv;
  for (std::string &word : words)
    argv.push_back(word.data());
  argv.push_back(nullptr);

  int toChild[2], fromChild[2];
  if (pipe(toChild) || pipe(fromChild))
    return Status(StatusCode::Io, std::string("pipe: ") + std::strerror(errno));
  // A peer that ends early must not end us by a signal.
  std::signal(SIGPIPE, SIG_IGN);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, toChild[0], 0);
  posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1);
  for (int fd : {toChild[0], toChild[1], fromChild[0], fromChild[1]})
    posix_spawn_file_actions_addclose(&actions, fd);
  int failed =
      posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(toChild[0]);
  close(fromChild[1]);
  input = toChild[1];
  output = fdopen(fromChild[0], "r");
  if (failed) {
    child = -1;
    return Status(StatusCode::NotFound,
                  words[0] + ": " + std::strerror(failed) +
                      "; --python names another interpreter");
  }
  return Status::ok();
}

Result<nlohmann::json> Peer::read() {
  char *line = nullptr;
  size_t capacity = 0;
  ssize_t length = getline(&line, &capacity, output);
  std::string text(line ? line : "", length > 0 ? length : 0);
  std::free(line);
  if (length <= 0)
    return Status(StatusCode::Unavailable, "the peer ended without an answer");
  auto value = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!value.is_object())
    return Status(StatusCode::Internal, "the peer answered: " + text);
  if (value.contains("error") && value["error"].is_string())
    return Status(StatusCode::Unavailable, value["error"]);
  return value;
}

Status Peer::write(const std::string &line) {
  std::string text = line + "\n";
  if (::write(input, text.data(), text.size()) != ssize_t(text.size()))
    return Status(StatusCode::Unavailable, "the peer has ended");
  return Status::ok();
}

} // namespace charonia::tool
