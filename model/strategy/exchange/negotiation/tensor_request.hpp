#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "model/core/dtype.hpp"
#include "model/core/values.hpp"

namespace lockstep {

/// What a rank may ask Horovod for. Names of different kinds never meet: Horovod puts the kind in
/// front of them.
enum class RequestKind : uint8_t { all_reduce, all_gather, broadcast, join };

/// Where the number of a tensor comes from. Only what is named by the user's program means the
/// same tensor on every rank; `unnamed` counts the calls of a rank, as Horovod's handles do.
enum class NameSpace : uint8_t { parameter, in_group, buffer, optimizer_state, object, unnamed };

/// The name of a tensor, as all ranks write it.
struct TensorName {
  RequestKind kind = RequestKind::all_reduce;
  NameSpace space = NameSpace::parameter;
  int64_t number = 0;
  auto operator<=>(const TensorName&) const = default;
};

/// What one rank says of a tensor that it has ready. All ranks must say the same of one name.
struct TensorRequest {
  TensorName name;
  DType dtype = DType::fp32;
  int64_t elements = 0;  ///< of all_gather: of this rank's part
  bool averages = false;
  int32_t root = 0;
  bool operator==(const TensorRequest&) const = default;
};

/// What the coordinator answers: all ranks do this now, or raise.
struct TensorResponse {
  TensorRequest request;
  enum class Error : uint8_t { none, mismatch, not_with_join, shut_down };
  Error error = Error::none;
};

/// Ranks exchange numbers; these are as many for each.
inline constexpr int64_t numbers_of_response = 8;

/// The lists as numbers, and back. `count` responses; more numbers may follow.
Values encoded(const std::vector<TensorResponse>& responses, int64_t room);
std::vector<TensorResponse> decoded(const Values& numbers, int64_t first, int64_t count);

}  // namespace lockstep
