#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace lockstep::test {

/// A folder of its own that goes away with the test.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "lockstep-cli.XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  std::string read(const std::string& name) const {
    std::ifstream in(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Ended {
  int code = -1;
  std::string output;  ///< stdout and stderr together
};

/// Runs a command of the shell.
inline Ended run_shell(const std::string& command) {
  Ended ended;
  std::FILE* pipe = popen(("(" + command + ") 2>&1").c_str(), "r");
  std::array<char, 4096> block{};
  for (size_t got = 0; (got = std::fread(block.data(), 1, block.size(), pipe)) > 0;) {
    ended.output.append(block.data(), got);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return ended;
}

/// Runs the built program, in `folder`; `redirect` goes behind the command: "2>/dev/null", `before`
/// is done first by the same shell.
inline Ended run_program(const std::string& arguments, const std::string& redirect = "2>&1",
                         const std::string& folder = "", const std::string& before = "") {
  const std::string place = folder.empty() ? "" : "cd " + folder + " && ";
  return run_shell(before + place + std::string(LOCKSTEP_PROGRAM) + " " + arguments + " " +
                   redirect);
}

inline int64_t lines_of(const std::string& output) {
  return std::count(output.begin(), output.end(), '\n');
}

}  // namespace lockstep::test
