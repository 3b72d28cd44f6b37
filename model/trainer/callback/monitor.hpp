#pragma once

#include <string>
#include <string_view>

#include "model/core/site.hpp"
#include "model/trainer/logging/run_log.hpp"

namespace lockstep {

class Training;

/// Adds the record of something that monitors a metric; its index in `log.monitors`.
size_t add_monitor(RankLog& log, std::string_view name, const std::string& monitor, SiteId site);

/// The metric is not in this rank's callback_metrics: a finding that lists what is, and
/// ProgramException, as the framework raises here.
[[noreturn]] void raise_missing_monitor(Training& training, std::string_view name,
                                        const std::string& monitor, SiteId site);

}  // namespace lockstep
