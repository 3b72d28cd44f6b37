#include <stdlib.h>
#include <unistd.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "io/table/csv_table.hpp"

namespace {

/// One file of this process, with other bytes each time.
class OneFile {
 public:
  OneFile() : descriptor_(mkstemp(path_.data())) {}
  ~OneFile() { unlink(path_.c_str()); }
  OneFile(const OneFile&) = delete;
  OneFile& operator=(const OneFile&) = delete;

  const std::string& with(const uint8_t* data, size_t size) const {
    const bool written = ftruncate(descriptor_, 0) == 0 &&
                         pwrite(descriptor_, data, size, 0) == static_cast<ssize_t>(size);
    if (!written) {
      abort();
    }
    return path_;
  }

 private:
  std::string path_ = "/tmp/lockstep-table-fuzz-XXXXXX";
  int descriptor_;
};

}  // namespace

/// Any bytes as a file of values: reading ends with a table of finite numbers, or with complaints
/// that render.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lockstep;
  static const OneFile file;
  const CsvTable csv = read_csv(file.with(data, size));
  if ((csv.table == nullptr) == csv.diagnostics.empty()) {
    __builtin_trap();
  }
  if (csv.table == nullptr) {
    if (render(csv.diagnostics, csv.lines).empty()) {
      __builtin_trap();
    }
    return 0;
  }
  const std::vector<int64_t> rows = {0, csv.table->rows() - 1};
  std::vector<double> values(rows.size());
  for (size_t column = 0; column < csv.table->columns().size(); ++column) {
    csv.table->read(column, rows, values);
    if (!std::isfinite(values[0]) || !std::isfinite(values[1])) {
      __builtin_trap();
    }
  }
  return 0;
}
