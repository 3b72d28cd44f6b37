#include "model/strategy/exchange/negotiation/tensor_request.hpp"

#include <algorithm>

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

std::vector<TensorResponse> decoded(const Values& numbers, int64_t first, int64_t count) {
  std::vector<TensorResponse> responses;
  int64_t at = first;
  const auto next = [&] { return numbers.integer(at++); };
  for (int64_t i = 0; i < count; ++i) {
    TensorResponse& response = responses.emplace_back();
    TensorRequest& request = response.request;
    request.name.kind = static_cast<RequestKind>(next());
    request.name.space = static_cast<NameSpace>(next());
    request.name.number = next();
    request.dtype = static_cast<DType>(next());
    request.elements = next();
    request.reduction = static_cast<Reduction>(next());
    request.root = static_cast<int32_t>(next());
    request.shape = next();
    response.error = static_cast<TensorResponse::Error>(next());
    response.parts.resize(static_cast<size_t>(next()));
    for (int64_t& part : response.parts) {
      part = next();
    }
  }
  return responses;
}

}  // namespace lockstep
