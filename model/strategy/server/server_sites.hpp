#pragma once

#include <string_view>

namespace lockstep::server_sites {

// What its operations are called in findings.
inline constexpr std::string_view make_group = "parameter server: communicator of the workers";
inline constexpr std::string_view pull = "parameter server: a worker pulls the weights";
inline constexpr std::string_view push =
    "parameter server: a worker pushes its gradient and waits for the weights";
inline constexpr std::string_view end = "parameter server: a worker says that it has ended";
inline constexpr std::string_view await = "parameter server: the server waits for its workers";
inline constexpr std::string_view take = "parameter server: which worker's message comes first";
inline constexpr std::string_view gradient = "parameter server: the server receives a gradient";
inline constexpr std::string_view add = "parameter server: sum of gradients";
inline constexpr std::string_view update = "parameter server: optimizer step";
inline constexpr std::string_view answer = "parameter server: the server sends the weights";
inline constexpr std::string_view prepare = "parameter server: gradients are set to zero";

inline constexpr std::string_view every_step[] = {make_group, pull, push,   end,    await,  take,
                                                  gradient,   add,  update, answer, prepare};

}  // namespace lockstep::server_sites
