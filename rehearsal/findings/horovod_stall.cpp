#include "rehearsal/findings/horovod_stall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

namespace lockstep::cli {

namespace {

constexpr int64_t default_warning_s = 60;

// As strtol reads it: of what is no number, 0.
int64_t variable_of(const Scenario& scenario, std::string_view name, int64_t otherwise) {
  const auto found = std::ranges::find(scenario.env, name, &EnvironmentVariable::name);
  return found == scenario.env.end() ? otherwise : std::strtol(found->value.c_str(), nullptr, 10);
}

}  // namespace

std::string stall_limits(const Scenario& scenario) {
  if (variable_of(scenario, "HOROVOD_STALL_CHECK_DISABLE", 0) > 0) {
    return "HOROVOD_STALL_CHECK_DISABLE is set, so Horovod waits without a word and without limit";
  }
  const int64_t warning_s =
      variable_of(scenario, "HOROVOD_STALL_CHECK_TIME_SECONDS", default_warning_s);
  const int64_t shutdown_s = variable_of(scenario, "HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", 0);
  std::string over_mpi = fmt::format("Over MPI Horovod warns after {} s and names them", warning_s);
  if (shutdown_s > 0 && shutdown_s < warning_s) {
    over_mpi += fmt::format(
        ", and never shuts down: HOROVOD_STALL_SHUTDOWN_TIME_SECONDS ({}) is less than "
        "HOROVOD_STALL_CHECK_TIME_SECONDS",
        shutdown_s);
  } else if (shutdown_s > 0) {
    // It is looked at every `warning_s`.
    over_mpi +=
        fmt::format(", and after {} to {} s it shuts down: all ranks raise HorovodInternalError",
                    shutdown_s, shutdown_s + warning_s);
  }
  return over_mpi + "; over Gloo it waits without a word and without limit";
}

}  // namespace lockstep::cli
