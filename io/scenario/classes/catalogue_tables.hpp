#pragma once

#include <span>

#include "io/scenario/classes/catalogue.hpp"

namespace lockstep {

std::span<const ClassRow> strategy_classes();
std::span<const ClassRow> callback_classes();
std::span<const ClassRow> logger_classes();
std::span<const ClassRow> profiler_classes();
std::span<const ClassRow> plugin_classes();
std::span<const ClassRow> optimizer_classes();
std::span<const ClassRow> scheduler_classes();
std::span<const ClassRow> metric_classes();
std::span<const ClassRow> loss_classes();
std::span<const ClassRow> layer_classes();
std::span<const ClassRow> launcher_classes();

}  // namespace lockstep
