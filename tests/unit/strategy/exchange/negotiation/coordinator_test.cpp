#include "model/strategy/exchange/negotiation/coordinator.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace coordinator_test {

namespace {

using Error = TensorResponse::Error;

TensorRequest gradient(int64_t number, int64_t elements = 4) {
  TensorRequest request;
  request.name = {RequestKind::all_reduce, NameSpace::parameter, number};
  request.elements = elements;
  return request;
}

TensorRequest named(RequestKind kind, int64_t number = 0) {
  TensorRequest request;
  request.name = {kind, NameSpace::unnamed, number};
  return request;
}

std::vector<int64_t> numbers_of(const std::vector<TensorResponse>& responses) {
  std::vector<int64_t> numbers;
  for (const TensorResponse& response : responses) {
    numbers.push_back(response.request.name.number);
  }
  return numbers;
}

using Numbers = std::vector<int64_t>;

}  // namespace

TEST_CASE("a name is ready once all ranks have asked for it, in whatever order") {
  Coordinator coordinator(2);
  coordinator.add(0, gradient(1));
  coordinator.add(0, gradient(2));
  coordinator.add(1, gradient(3));
  CHECK(coordinator.take_ready().empty());
  coordinator.add(1, gradient(2));
  coordinator.add(1, gradient(1));
  CHECK(numbers_of(coordinator.take_ready()) == Numbers{2, 1});
  CHECK(coordinator.take_ready().empty());
  coordinator.add(0, gradient(3));
  CHECK(numbers_of(coordinator.take_ready()) == Numbers{3});
}

TEST_CASE("kinds have names of their own: an all_reduce and an all_gather never meet") {
  Coordinator coordinator(2);
  coordinator.add(0, named(RequestKind::all_reduce, 7));
  coordinator.add(1, named(RequestKind::all_gather, 7));
  CHECK(coordinator.take_ready().empty());
}

TEST_CASE("one name with two shapes is an error for all") {
  Coordinator coordinator(2);
  coordinator.add(0, gradient(1, 4));
  coordinator.add(1, gradient(1, 5));
  const auto responses = coordinator.take_ready();
  REQUIRE(responses.size() == 1);
  CHECK(responses.front().error == Error::mismatch);
}

TEST_CASE("a rank that has joined counts as having everything, but only all_reduce can do that") {
  Coordinator coordinator(3);
  coordinator.add(0, gradient(1));
  coordinator.add(1, gradient(1));
  coordinator.add(0, named(RequestKind::broadcast, 5));
  coordinator.add(1, named(RequestKind::broadcast, 5));
  CHECK(coordinator.take_ready().empty());
  coordinator.add(2, named(RequestKind::join));
  const auto responses = coordinator.take_ready();
  REQUIRE(responses.size() == 2);
  CHECK(responses[0].error == Error::none);
  CHECK(responses[1].error == Error::not_with_join);
  coordinator.add(0, named(RequestKind::join));
  CHECK(coordinator.take_ready().empty());
  coordinator.add(1, named(RequestKind::join));
  const auto all = coordinator.take_ready();
  REQUIRE(all.size() == 1);
  CHECK(all.front().request.name.kind == RequestKind::join);
  coordinator.add(0, gradient(2));  // nobody is joined any more
  coordinator.add(1, gradient(2));
  CHECK(coordinator.take_ready().empty());
}

TEST_CASE("parts of an all_gather may differ in their first dimension alone") {
  const auto part = [](int64_t rows, int64_t columns) {
    TensorRequest request = named(RequestKind::all_gather, 1);
    request.elements = rows * columns;
    request.shape = number_of_shape(std::vector<int64_t>{columns});
    return request;
  };
  Coordinator coordinator(2);
  coordinator.add(1, part(4, 3));
  coordinator.add(0, part(2, 3));
  const auto fitting = coordinator.take_ready();
  REQUIRE(fitting.size() == 1);
  CHECK(fitting.front().error == Error::none);
  CHECK(fitting.front().parts == Numbers{6, 12});
  coordinator.add(0, part(2, 3));
  coordinator.add(1, part(2, 4));
  CHECK(coordinator.take_ready().front().error == Error::mismatch);
}

TEST_CASE("requests and responses come back from the numbers that carry them") {
  TensorRequest request = gradient(int64_t{1} << 40, int64_t{1} << 35);
  request.dtype = DType::fp16;
  request.reduction = Reduction::avg;
  request.shape = number_of_shape(std::vector<int64_t>{5, 7});
  request.root = 3;
  TensorResponse gathered{named(RequestKind::all_gather, 2), Error::none, {3, 0, 4}};
  const std::vector<TensorResponse> all = {
      {gradient(0), Error::none}, {request, Error::mismatch}, gathered};
  CHECK(count_numbers(all) == 3 * numbers_of_response + 3);
  const Values numbers = encoded(all, 100);
  CHECK(numbers.size() == 100);
  const auto back = decoded(numbers, 0, 3);
  REQUIRE(back);
  const std::vector<TensorResponse>& responses = *back;
  CHECK(responses[2].parts == gathered.parts);
  CHECK(responses[0].request == gradient(0));
  CHECK(responses[1].request == request);
  CHECK(responses[1].error == Error::mismatch);
}

TEST_CASE("numbers that were damaged on the way are no list of responses") {
  const TensorResponse gathered{named(RequestKind::all_gather, 2), Error::none, {3, 0, 4}};
  const Values numbers = encoded({gathered}, 0);
  REQUIRE(decoded(numbers, 0, 1));
  CHECK_FALSE(decoded(numbers, 0, -1));
  CHECK_FALSE(decoded(numbers, 0, 2));
  CHECK_FALSE(decoded(numbers, 1, 1));
  // Kind, space, type, elements, reduction, root, error, the number of parts, and two of these.
  for (const int64_t at : {0, 1, 3, 4, 5, 6, 8, 9, 10, 12}) {
    CAPTURE(at);
    for (const int64_t wrong : {int64_t{-1}, int64_t{1} << 62}) {
      const bool is_size = at == 4 || at >= 10;  // any number may be one
      Values damaged = numbers;
      damaged.set_integer(at, wrong);
      CHECK(decoded(damaged, 0, 1).has_value() == (is_size && wrong > 0));
    }
  }
}

}  // namespace coordinator_test
