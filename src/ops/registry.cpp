#include "ops/registry.h"

#include <list>

namespace selkie::ops {

#define OP(name) ir::OpDef name##_op();
#define FAMILY(name) std::vector<ir::OpDef> name##_family();
#include "ops/ops.def"
#undef OP
#undef FAMILY

namespace {

std::list<ir::OpDef> all_records() {
  std::list<ir::OpDef> records;
#define OP(name) records.push_back(name##_op());
#define FAMILY(name) \
  for (ir::OpDef & op : name##_family()) records.push_back(std::move(op));
#include "ops/ops.def"
#undef OP
#undef FAMILY
  return records;
}

}  // namespace

const ir::OpSet& op_set() {
  static const std::list<ir::OpDef> records = all_records();
  static const ir::OpSet set([] {
    std::vector<const ir::OpDef*> pointers;
    for (const ir::OpDef& op : records) pointers.push_back(&op);
    return pointers;
  }());
  return set;
}

}  // namespace selkie::ops
