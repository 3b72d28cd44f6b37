#include "model/strategy/exchange/negotiation/tensor_request.hpp"

namespace lockstep {

Values encoded(const std::vector<TensorResponse>& responses, int64_t room) {
  Values numbers(DType::int64, room * numbers_of_response);
  int64_t at = 0;
  for (const TensorResponse& response : responses) {
    const TensorRequest& request = response.request;
    for (const int64_t number :
         {static_cast<int64_t>(request.name.kind), static_cast<int64_t>(request.name.space),
          request.name.number, static_cast<int64_t>(request.dtype), request.elements,
          int64_t{request.averages ? 1 : 0}, int64_t{request.root},
          static_cast<int64_t>(response.error)}) {
      numbers.set_integer(at++, number);
    }
  }
  return numbers;
}

std::vector<TensorResponse> decoded(const Values& numbers, int64_t first, int64_t count) {
  std::vector<TensorResponse> responses;
  int64_t at = first * numbers_of_response;
  const auto next = [&] { return numbers.integer(at++); };
  for (int64_t i = 0; i < count; ++i) {
    TensorResponse& response = responses.emplace_back();
    TensorRequest& request = response.request;
    request.name.kind = static_cast<RequestKind>(next());
    request.name.space = static_cast<NameSpace>(next());
    request.name.number = next();
    request.dtype = static_cast<DType>(next());
    request.elements = next();
    request.averages = next() == 1;
    request.root = static_cast<int32_t>(next());
    response.error = static_cast<TensorResponse::Error>(next());
  }
  return responses;
}

}  // namespace lockstep
