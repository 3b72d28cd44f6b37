#include "model/strategy/exchange/negotiation/tensor_request.hpp"

#include <algorithm>
#include <limits>

namespace lockstep {

namespace {

// FNV-1a, of which a number of 63 bits is left.
class Mixture {
 public:
  void add(uint64_t value) { bits_ = (bits_ ^ value) * 1'099'511'628'211u; }
  int64_t number() const { return static_cast<int64_t>(bits_ >> 1); }

 private:
  uint64_t bits_ = 14'695'981'039'346'656'037u;
};

}  // namespace

std::string_view prefix_of(RequestKind kind) {
  switch (kind) {
    case RequestKind::all_reduce: return "allreduce";
    case RequestKind::all_gather: return "allgather";
    case RequestKind::broadcast: return "broadcast";
    case RequestKind::join: return "join";
    case RequestKind::barrier: return "barrier";
  }
  return "";
}

int64_t number_of_name(std::string_view name) {
  Mixture mixed;
  for (const char letter : name) {
    mixed.add(static_cast<unsigned char>(letter));
  }
  return mixed.number();
}

int64_t number_of_shape(std::span<const int64_t> shape) {
  Mixture mixed;
  for (const int64_t size : shape) {
    mixed.add(static_cast<uint64_t>(size));
  }
  return mixed.number();
}

bool fit_together(const TensorRequest& one, const TensorRequest& other) {
  TensorRequest alike = other;
  if (one.name.kind == RequestKind::all_gather) {
    alike.elements = one.elements;
  }
  return one == alike;
}

int64_t count_numbers(const std::vector<TensorResponse>& responses) {
  int64_t count = 0;
  for (const TensorResponse& response : responses) {
    count += numbers_of_response + std::ssize(response.parts);
  }
  return count;
}

void add_numbers(const TensorRequest& request, std::vector<int64_t>& numbers) {
  numbers.insert(numbers.end(),
                 {static_cast<int64_t>(request.name.kind), static_cast<int64_t>(request.name.space),
                  request.name.number, static_cast<int64_t>(request.dtype), request.elements,
                  static_cast<int64_t>(request.reduction), int64_t{request.root}, request.shape});
}

void add_numbers(const TensorResponse& response, std::vector<int64_t>& numbers) {
  add_numbers(response.request, numbers);
  numbers.push_back(static_cast<int64_t>(response.error));
  numbers.push_back(std::ssize(response.parts));
  numbers.insert(numbers.end(), response.parts.begin(), response.parts.end());
}

Values encoded(const std::vector<TensorResponse>& responses, int64_t room) {
  Values numbers(DType::int64, std::max(room, count_numbers(responses)));
  std::vector<int64_t> list;
  for (const TensorResponse& response : responses) {
    add_numbers(response, list);
  }
  for (int64_t at = 0; at < std::ssize(list); ++at) {
    numbers.set_integer(at, list[static_cast<size_t>(at)]);
  }
  return numbers;
}

namespace {

// Numbers that another rank has sent, which may have been damaged on the way.
class Reader {
 public:
  Reader(const Values& numbers, int64_t first) : numbers_(numbers), at_(first) {}

  int64_t next() {
    is_right_ = is_right_ && 0 <= at_ && at_ < numbers_.size();
    return is_right_ ? numbers_.integer(at_++) : 0;
  }
  int64_t next_up_to(int64_t last) {
    const int64_t number = next();
    is_right_ = is_right_ && 0 <= number && number <= last;
    return is_right_ ? number : 0;
  }
  template <typename Enum>
  Enum next_up_to(Enum last) {
    return static_cast<Enum>(next_up_to(static_cast<int64_t>(last)));
  }
  int64_t left() const { return numbers_.size() - at_; }
  bool is_right() const { return is_right_; }

 private:
  const Values& numbers_;
  int64_t at_;
  bool is_right_ = true;
};

TensorResponse read_response(Reader& reader) {
  constexpr int64_t largest = std::numeric_limits<int64_t>::max();
  TensorResponse response;
  TensorRequest& request = response.request;
  request.name.kind = reader.next_up_to(RequestKind::barrier);
  request.name.space = reader.next_up_to(NameSpace::statement);
  request.name.number = reader.next();
  request.dtype = reader.next_up_to(static_cast<DType>(dtype_count - 1));
  request.elements = reader.next_up_to(largest);
  request.reduction = reader.next_up_to(Reduction::max);
  request.root =
      static_cast<int32_t>(reader.next_up_to(int64_t{std::numeric_limits<int32_t>::max()}));
  request.shape = reader.next();
  response.error = reader.next_up_to(TensorResponse::Error::damaged);
  response.parts.resize(static_cast<size_t>(reader.next_up_to(reader.left())));
  for (int64_t& part : response.parts) {
    part = reader.next_up_to(largest);
  }
  return response;
}

}  // namespace

std::optional<std::vector<TensorResponse>> decoded(const Values& numbers, int64_t first,
                                                   int64_t count) {
  Reader reader(numbers, first);
  std::vector<TensorResponse> responses;
  if (count < 0 || count > reader.left() / numbers_of_response) {
    return std::nullopt;
  }
  for (int64_t i = 0; i < count; ++i) {
    responses.push_back(read_response(reader));
  }
  return reader.is_right() ? std::optional(std::move(responses)) : std::nullopt;
}

}  // namespace lockstep
