// `doctor`: what this machine can do with Lockstep, what is missing, and what brings it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>

#include "cli/commands.hpp"
#include "cli/json.hpp"
#include "cli/launch/launcher.hpp"
#include "cli/one_run.hpp"

namespace lockstep::cli {

namespace {

/// One thing that is there or is missing.
struct Check {
  std::string name;
  bool found = false;
  std::string detail;
  std::string used_for;
  std::string remedy;  ///< the command that brings it
};

bool loads(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) {
    dlclose(handle);
  }
  return handle != nullptr;
}

std::string first_line_of(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

Check threads_world() {
  return {"gloo", has_thread_world(), has_thread_world() ? "a thread a rank, 8 ranks at most" : "",
          "verify and test --world threads", "apt-get install libgloo-dev, then ./dev build"};
}

Check rank_program_check() {
  const std::string program = rank_program();
  return {"lockstep-rank", !program.empty(), program, "exec on CPUs: LibTorch and Gloo",
          "./dev libtorch, then ./dev build"};
}

Check driver() {
  const std::string version = first_line_of("/proc/driver/nvidia/version");
  return {"NVIDIA driver", !version.empty(), version, "exec on GPUs",
          "install the driver of the GPU"};
}

Check cuda() {
  const bool found = loads("libcudart.so") || loads("libcudart.so.13") || loads("libcudart.so.12");
  return {"CUDA runtime", found, "", "exec on GPUs", "install the CUDA Toolkit 13.0"};
}

Check nccl() {
  return {"NCCL", loads("libnccl.so.2"), "", "exec on GPUs",
          "install NCCL 2.28 or later (nvidia-nccl-cu13)"};
}

Check cuda_program() {
  return {"lockstep-rank-cuda", false, "", "exec on GPUs: CUDA and NCCL",
          "this version has no rank program for GPUs"};
}

// Each pair of ranks of one machine holds a connection in both.
Check open_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t wanted = 1024;
  return {"open files", limit.rlim_cur >= wanted,
          fmt::format("{} at a time", static_cast<uint64_t>(limit.rlim_cur)),
          "exec and threads: one connection a pair of ranks", "ulimit -n 4096"};
}

std::string text_of(const Check& check, const Style& style) {
  const std::string mark = check.found ? style.good("there  ") : style.warning("missing");
  std::string line = fmt::format("{}  {:<19} {}", mark, check.name,
                                 check.found ? check.detail : "for " + check.used_for);
  if (!check.found) {
    line += fmt::format("\n{:30}{}", "", check.remedy);
  }
  return line + "\n";
}

}  // namespace

Answer doctor_command(const Request& request, const Style& style) {
  const std::vector<Check> checks = {
      threads_world(), rank_program_check(), cuda_program(), driver(), cuda(),
      nccl(),          open_files()};
  Answer answer;
  if (request.format == Format::json) {
    Json list = Json::array();
    for (const Check& check : checks) {
      list.push_back({{"name", check.name},
                      {"found", check.found},
                      {"detail", check.detail},
                      {"used_for", check.used_for},
                      {"remedy", check.found ? "" : check.remedy}});
    }
    answer.text = text_of(Json{{"command", "doctor"}, {"checks", list}});
    return answer;
  }
  answer.text = style.good("there  ") + "  run, verify, test    nothing but this program\n";
  for (const Check& check : checks) {
    answer.text += text_of(check, style);
  }
  return answer;
}

}  // namespace lockstep::cli
