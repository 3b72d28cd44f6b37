// `doctor`: what this machine can do with Lockstep, what is missing, and how to install it.
#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include "cli/commands/commands.hpp"
#include "cli/render/json.hpp"
#include "rehearsal/launch/device_choice.hpp"
#include "rehearsal/launch/gpu_inventory.hpp"
#include "rehearsal/launch/launcher.hpp"
#include "rehearsal/run/one_run.hpp"

namespace lockstep::cli {

namespace {

/// One thing that was found or is missing.
struct Check {
  std::string name;
  bool found = false;
  std::string detail;
  std::string used_for;
  std::string remedy;  ///< the command that installs it
};

bool loads(const char* library) {
  void* handle = dlopen(library, RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) {
    dlclose(handle);
  }
  return handle != nullptr;
}

Check threads_world() {
  return {"gloo", has_thread_world(),
          has_thread_world() ? "one thread per rank, 8 ranks at most" : "",
          "verify and test --world threads", "apt-get install libgloo-dev, then ./dev build"};
}

Check rank_program_check() {
  const std::string program = rank_program();
  return {"lockstep-rank", !program.empty(), program, "exec on CPUs: LibTorch and Gloo",
          "./dev libtorch, then ./dev build"};
}

Check driver(const GpuInventory& inventory) {
  std::string detail = inventory.driver;
  if (inventory.cuda_version > 0) {
    detail += fmt::format(", runs CUDA {}.{}", inventory.cuda_version / 1000,
                          inventory.cuda_version % 1000 / 10);
  }
  return {"NVIDIA driver", inventory.cuda_version >= cuda_version_needed, detail, "exec on GPUs",
          inventory.driver.empty()
              ? inventory.problem + "; install a driver of the 580 series or later"
              : "the driver " + detail + "; install one of the 580 series or later"};
}

Check gpus(const GpuInventory& inventory) {
  return {"GPUs", !inventory.names.empty(),
          fmt::format("{}: {}", inventory.names.size(), fmt::join(inventory.names, ", ")),
          "exec on GPUs", "run it on a machine with a GPU"};
}

Check cuda() {
  const bool found = loads("libcudart.so") || loads("libcudart.so.13");
  return {"CUDA runtime", found, "", "exec on GPUs", "install the CUDA Toolkit 13.0"};
}

Check nccl() {
  return {"NCCL", loads("libnccl.so.2"), "", "exec on GPUs",
          "install NCCL 2.28 or later: python3 -m pip install nvidia-nccl-cu13, and name its lib "
          "folder in LD_LIBRARY_PATH"};
}

Check cuda_program() {
  const std::string program = rank_program(cuda_rank_program);
  return {cuda_rank_program, !program.empty(), program, "exec on GPUs: CUDA and NCCL",
          "with a CUDA Toolkit 13 and NCCL's header: ./dev libtorch, then ./dev build"};
}

// Each pair of ranks of one machine holds a connection in both.
Check open_files() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  constexpr rlim_t wanted = 1024;
  return {"open-file limit", limit.rlim_cur >= wanted, std::to_string(limit.rlim_cur),
          "exec and threads: one connection per pair of ranks", "ulimit -n 4096"};
}

std::string text_of_check(const Check& check, const Style& style) {
  const std::string mark = check.found ? style.good("found  ") : style.warning("missing");
  std::string line = fmt::format("{}  {:<19} {}", mark, check.name,
                                 check.found ? check.detail : "for " + check.used_for);
  if (!check.found) {
    line += fmt::format("\n{:30}{}", "", check.remedy);
  }
  return line + "\n";
}

}  // namespace

Answer doctor_command(const Request& request, const Style& style) {
  const GpuInventory inventory = find_gpus();
  const std::vector<Check> checks = {threads_world(), rank_program_check(),
                                     cuda_program(),  driver(inventory),
                                     gpus(inventory), cuda(),
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
    answer.text =
        text_of(Json{{"schema_version", schema_version}, {"command", "doctor"}, {"checks", list}});
    return answer;
  }
  answer.text = style.good("found  ") + "  run, verify, test    need only this program\n";
  for (const Check& check : checks) {
    answer.text += text_of_check(check, style);
  }
  return answer;
}

}  // namespace lockstep::cli
