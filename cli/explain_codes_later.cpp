// Codes with a meaning that nothing checks yet: a run without them says nothing about them.
#include "cli/explain_tables.hpp"

namespace lockstep::cli {

constexpr Page later_pages_table[] = {
    {"LS403", "a resource is never released",
     R"page(
What   Groups, handles or memory that grow from step to step.
Note   Lockstep does not check this yet, so its absence means nothing.
)page"},
};

std::span<const Page> later_pages() { return later_pages_table; }

}  // namespace lockstep::cli
