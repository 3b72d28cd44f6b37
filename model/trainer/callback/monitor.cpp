#include "model/trainer/callback/monitor.hpp"

#include <fmt/core.h>

#include "model/trainer/loop/training.hpp"

namespace lockstep {

size_t add_monitor(RankLog& log, std::string_view name, const std::string& monitor, SiteId site) {
  MonitorLog added;
  added.name = name;
  added.monitor = monitor;
  added.site = site;
  log.monitors.push_back(std::move(added));
  return log.monitors.size() - 1;
}

void raise_missing_monitor(Training& training, std::string_view name, const std::string& monitor,
                           SiteId site) {
  std::string known;
  for (const auto& [key, value] : training.log().metrics) {
    known += (known.empty() ? "`" : ", `") + key + "`";
  }
  const std::string message =
      fmt::format("{} monitors `{}`, which this rank has not logged", name, monitor);
  const std::string remedy =
      known.empty() ? fmt::format("log `{}` on every rank before it is looked at", monitor)
                    : fmt::format("log `{}` on every rank, or monitor one of {}", monitor, known);
  training.log().add({"evaluation", site, message, remedy});
  throw ProgramException(site, message);
}

}  // namespace lockstep
