#pragma once

#include <string_view>

namespace lockstep::xla_sites {

// What its operations are called in findings.
inline constexpr std::string_view send_parameters = "xla: all_reduce that broadcasts parameters";
inline constexpr std::string_view begin_gradients = "xla: gradients begin at zero";
inline constexpr std::string_view reduce_gradients = "xla: all_reduce of all gradients";
inline constexpr std::string_view scale_gradients = "xla: gradients divided by the replicas";
inline constexpr std::string_view update = "xla: optimizer step";
inline constexpr std::string_view save = "xla: rendezvous of xm.save";

inline constexpr std::string_view every_step[] = {
    send_parameters, begin_gradients, reduce_gradients, scale_gradients, update, save};

}  // namespace lockstep::xla_sites
