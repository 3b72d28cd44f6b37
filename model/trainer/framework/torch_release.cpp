#include "model/trainer/framework/torch_release.hpp"

#include <array>

namespace lockstep {

namespace {

struct TestedTorch {
  Version below;  ///< this release of Lightning
  Version torch;
};

constexpr auto tested_torch = std::to_array<TestedTorch>({
    {{1, 5, 0}, {1, 9, 0}},
    {{1, 6, 0}, {1, 10, 0}},
    {{1, 7, 0}, {1, 11, 0}},
    {{1, 8, 0}, {1, 12, 0}},
    {{2, 0, 0}, {1, 13, 0}},
    {{2, 1, 0}, {2, 0, 0}},
    {{2, 2, 0}, {2, 1, 0}},
    {{2, 3, 0}, {2, 2, 0}},
    {{2, 4, 0}, {2, 3, 0}},
    {{2, 5, 0}, {2, 4, 0}},
    {{2, 6, 0}, {2, 7, 0}},
});

constexpr Version newest_torch{2, 11, 0};

}  // namespace

Version torch_release_of(const Version& lightning) {
  for (const TestedTorch& row : tested_torch) {
    if (lightning < row.below) {
      return row.torch;
    }
  }
  return newest_torch;
}

}  // namespace lockstep
