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

void put(ResponseCache& cache, const TensorRequest& own) {
  cache.put({own, TensorResponse::Error::none}, own);
}

}  // namespace

TEST_CASE("a cache gives up what was used longest ago, and its position goes to the new one") {
  ResponseCache cache(2);
  put(cache, gradient(1));
  put(cache, gradient(2));
  put(cache, gradient(1));
  put(cache, gradient(3));
  CHECK(cache.position_of(gradient(1)) == size_t{0});
  CHECK_FALSE(cache.position_of(gradient(2)));
  CHECK(cache.position_of(gradient(3)) == size_t{1});
}

TEST_CASE("another shape of a known name is not in the cache until it has been carried out") {
  ResponseCache cache(4);
  put(cache, gradient(1, 4));
  CHECK_FALSE(cache.position_of(gradient(1, 5)));
  put(cache, gradient(1, 5));
  CHECK(cache.position_of(gradient(1, 5)) == size_t{0});
  CHECK_FALSE(cache.position_of(gradient(1, 4)));
}

TEST_CASE("a known name in another form is outdated, and goes on all ranks") {
  ResponseCache cache(4);
  put(cache, gradient(1));
  put(cache, gradient(2));
  put(cache, gradient(3));
  CHECK_FALSE(cache.outdated_by(gradient(2)));
  CHECK_FALSE(cache.outdated_by(gradient(4)));
  CHECK(cache.outdated_by(gradient(2, 5)) == size_t{1});
  cache.erase({0, 1});
  CHECK(cache.positions() == 1);
  CHECK(cache.position_of(gradient(3)) == size_t{0});
}

TEST_CASE("a capacity of 0 keeps nothing") {
  ResponseCache cache(0);
  put(cache, gradient(1));
  CHECK(cache.positions() == 0);
}

}  // namespace response_cache_test
