#include "model/strategy/exchange/negotiation/response_cache.hpp"

#include <catch2/catch.hpp>

using namespace lockstep;

namespace response_cache_test {

namespace {

TensorRequest gradient(int64_t number, int64_t elements = 4) {
  TensorRequest request;
  request.name = {RequestKind::all_reduce, NameSpace::parameter, number};
  request.elements = elements;
  return request;
}

}  // namespace

TEST_CASE("a cache gives up what was used longest ago, and its position goes to the new one") {
  ResponseCache cache(2);
  cache.put(gradient(1));
  cache.put(gradient(2));
  cache.put(gradient(1));
  cache.put(gradient(3));
  CHECK(cache.position_of(gradient(1)) == size_t{0});
  CHECK_FALSE(cache.position_of(gradient(2)));
  CHECK(cache.position_of(gradient(3)) == size_t{1});
}

TEST_CASE("another shape of a known name is not in the cache until it has been carried out") {
  ResponseCache cache(4);
  cache.put(gradient(1, 4));
  CHECK_FALSE(cache.position_of(gradient(1, 5)));
  cache.put(gradient(1, 5));
  CHECK(cache.position_of(gradient(1, 5)) == size_t{0});
  CHECK_FALSE(cache.position_of(gradient(1, 4)));
}

TEST_CASE("a capacity of 0 keeps nothing") {
  ResponseCache cache(0);
  cache.put(gradient(1));
  CHECK(cache.positions() == 0);
}

}  // namespace response_cache_test
