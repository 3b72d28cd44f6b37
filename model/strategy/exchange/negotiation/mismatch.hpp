#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategy/exchange/negotiation/tensor_request.hpp"

namespace lockstep {

/// What Horovod raises: `not_with_join` and `shut_down` are whole messages. The text behind
/// `mismatch` says which tensor it is, and what the ranks have handed over under its name.
namespace negotiation_errors {
inline constexpr std::string_view mismatch =
    "HorovodInternalError: the ranks hand over different tensors under one name: ";
inline constexpr std::string_view not_with_join =
    "HorovodInternalError: all_gather and broadcast are not supported while a rank has joined";
inline constexpr std::string_view shut_down =
    "HorovodInternalError: Horovod has been shut down: another rank has ended";
}  // namespace negotiation_errors

/// Who has asked for what under one name, as numbers for TensorResponse::parts: all raise, and each
/// can say whose requests differ. `asked`: by member.
std::vector<int64_t> numbers_of_mismatch(const std::map<int32_t, TensorRequest>& asked);

/// The message of a rank that such a response reached. `members`: the ranks that they are.
std::string mismatch_text(const std::string& name, const TensorResponse& response,
                          std::span<const int32_t> members);

}  // namespace lockstep
