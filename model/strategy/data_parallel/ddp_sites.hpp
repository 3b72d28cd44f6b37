#pragma once

#include <string_view>

namespace lockstep::ddp_sites {

// What its operations are called in findings.
inline constexpr std::string_view count_parameters = "ddp: all_gather of the number of parameters";
inline constexpr std::string_view compare_shapes = "ddp: broadcast of parameter shapes";
inline constexpr std::string_view send_parameters = "ddp: broadcast of parameters";
inline constexpr std::string_view send_buffers = "ddp: broadcast of buffers";
inline constexpr std::string_view send_order = "ddp: broadcast of the rebuilt bucket order";
inline constexpr std::string_view send_sizes = "ddp: broadcast of the rebuilt bucket sizes";
inline constexpr std::string_view fill_bucket = "ddp: gradients into buckets";
inline constexpr std::string_view reduce_bucket = "ddp: all_reduce of a bucket";
inline constexpr std::string_view reduce_map = "ddp: all_reduce of the used-parameter map";
inline constexpr std::string_view empty_bucket = "ddp: buckets into gradients";
inline constexpr std::string_view update = "ddp: optimizer step";
inline constexpr std::string_view count_active = "ddp: join, all_reduce of who still has data";
inline constexpr std::string_view terminate = "ddp: join, all_reduce of who ends all ranks";
inline constexpr std::string_view choose_root = "ddp: join, all_reduce of whose buffers count";
inline constexpr std::string_view will_synchronise = "ddp: join, all_reduce of who synchronises";
inline constexpr std::string_view last_joiner = "ddp: join, all_reduce of who joined last";
inline constexpr std::string_view final_model = "ddp: join, broadcast of the last joiner's model";

inline constexpr std::string_view every_step[] = {
    count_parameters, compare_shapes, send_parameters,  send_buffers, send_order, send_sizes,
    fill_bucket,      reduce_bucket,  reduce_map,       empty_bucket, update,     count_active,
    terminate,        choose_root,    will_synchronise, last_joiner,  final_model};

}  // namespace lockstep::ddp_sites
