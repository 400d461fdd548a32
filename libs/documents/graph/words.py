"""Closed word lists for names, as parts of patterns, and which spellings are one name."""

from typing import Final

_HAN: Final = r"[\u3400-\u4dbf\u4e00-\u9fff]"
_FIELD_ZH: Final = (
    "财务|人力资源|人事|行政|采购|法务|法律|信息技术|技术|市场|营销|销售|运营|审计|内审|信息|数据|"
    "研发|生产|"
    "质量|品质|安全|环保|项目|区域|产品|客户服务|客服|内控|合规|风险管理|风控|资金|税务|工程|设备|"
    "仓储|物流|"
    "战略|投资|基建|后勤|培训|招聘|薪酬|品牌|公关|供应链|综合|业务|资产|档案"
)
_RANK_ZH: Final = "直属|直接|分管|部门|首席|执行|常务|高级|助理|副|总|集团|区域|大区"
ROLE_ZH: Final = (
    rf"(?:{_FIELD_ZH}|{_RANK_ZH}|部){{0,4}}(?:总监|总经理|经理|主管|主任|总裁|部长|处长|科长|院长|"
    rf"校长|所长|"
    r"负责人|领导)|(?:副)?董事长|董事会|监事会|股东大会|股东会|总裁办公会|总经理办公会|"
    r"首席(?:财务|执行|运营|技术|信息|法务|合规)官|总会计师|总工程师|审计委员会|薪酬委员会|"
    r"风险委员会|职工代表大会"
)
DEPARTMENT_ZH: Final = (
    rf"(?:{_FIELD_ZH}){{1,3}}(?:管理|服务|控制)?"
    r"(?:事业部|部门|部|处|科|中心|委员会|办公室)(?!长|分|署|件)"
)
ORGANISATION_ZH: Final = (
    r"(?:全资|控股|参股)?子公司|母公司|分公司|总公司|集团公司|分支机构|总部|供应商|承包商|"
    rf"(?:(?<!{_HAN})|(?<=[由经向与和及]))(?:原告|被告|甲方|乙方)?{_HAN}{{2,14}}?"
    r"(?:股份有限公司|有限责任公司|有限公司)"
)
ACTIVITY_ZH: Final = (
    "报销|采购|付款|支付|借款|贷款|预算|合同|差旅费?|出差|请假|休假|年假|病假|事假|产假|婚假|加班|"
    "退货|退款|"
    "投诉|捐赠|担保|投资|招标|报废|招待费?|培训|发票|预付款|离职|入职|调岗|用印|租赁|资产处置|"
    "广告|赔偿|理赔|保修"
)
FORM_ZH: Final = (
    r"《[^《》\n]{2,40}》|"
    rf"(?:{ACTIVITY_ZH}|{_FIELD_ZH}|费用){{1,3}}(?:申请|审批|登记|备案|审核)?(?:申请表|申请单|"
    rf"申请书|审批表|审批单|登记表|"
    r"备案表|报销单|确认书|通知书|承诺书|清单|单|表)(?![位独纯现示达述明决彰扬面])"
)
_FIELD_EN: Final = (
    r"finance|financial|accounting|human[ ]resources|hr|people|(?-i:IT)|information[ "
    r"](?:technology|security)|"
    r"technology|technical|security|marketing|sales|operations|operating|audit|legal|compliance|"
    r"risk|"
    r"procurement|purchasing|product|quality|safety|project|tax|treasury|engineering|research|"
    r"customer[ ]service|data[ ]protection|facilities|logistics"
)
_RANK_EN: Final = (
    r"general|chief|executive|managing|deputy|vice|senior|assistant|regional|department(?:al)?|"
    r"line|"
    r"direct|group|plant|branch|country|office|account|credit|team|division(?:al)?"
)
ROLE_EN: Final = (
    rf"(?:(?:{_FIELD_EN}|{_RANK_EN})[ -]){{1,4}}(?:director|manager|officer|head|supervisor|"
    rf"controller|"
    r"president|committee|secretary|auditor|counsel)s?|"
    rf"(?:heads?|directors?|vice[ ]presidents?)[ ]of[ ](?:the[ ])?(?:{_FIELD_EN})|"
    r"boards?[ ]of[ ]directors|(?:line[ ])?managers?|supervisors?|treasurers?|controllers?|"
    r"accountants?|"
    r"ceo|cfo|coo|cto|cio|chair(?:man|woman|person)"
)
DEPARTMENT_EN: Final = (
    rf"(?:{_FIELD_EN})(?:[ ](?:and|&)[ ](?:{_FIELD_EN}))?[ ]"
    r"(?:departments?|teams?|offices?|divisions?|units?)"
)
ORGANISATION_EN: Final = (
    r"parent[ ]compan(?:y|ies)|subsidiar(?:y|ies)|headquarters|head[ ]offices?|branch(?:es)?(?:[ "
    r"]offices?)?|"
    r"affiliates?|suppliers?|vendors?|contractors?"
)
ACTIVITY_EN: Final = (
    r"reimburse(?:d|ments?)?|expense[ ]claims?|procurements?|purchas(?:es?|ing)|payments?|loans?|"
    r"budgets?|contracts?|business[ ]trips?|travel|(?:annual|sick|parental|maternity|unpaid)[ "
    r"]leave|"
    r"leave[ ]of[ ]absence|overtime|refunds?|complaints?|donations?|guarantees?|investments?|"
    r"tenders?|"
    r"trainings?|invoices?|leases?|entertainment|warrant(?:y|ies)|compensation"
)
FORM_EN: Final = (
    rf"(?:{ACTIVITY_EN}|{_FIELD_EN})[ ](?:request|claim|application|approval|order|report)?[ "
    rf"]?forms?|"
    r"\b(?-i:Form)[ ](?-i:[A-Z]{1,3}-?\d{1,5}|\d{1,5}[A-Z]?)\b"
)

SAME: Final = {
    spelling: key
    for key, spellings in {
        "subsidiary": "子公司 全资子公司 控股子公司",
        "parent company": "母公司 集团公司 总公司",
        "branch": "分公司 分支机构",
        "headquarters": "总部",
        "supplier": "供应商",
        "contractor": "承包商",
        "finance director": "财务总监",
        "cfo": "首席财务官",
        "ceo": "首席执行官",
        "general manager": "总经理",
        "deputy general manager": "副总经理",
        "line manager": "直属领导 直接领导 直接主管 直属主管 直属经理",
        "department manager": "部门经理 部门主管",
        "department head": "部门负责人 部门领导",
        "finance manager": "财务经理 财务部经理",
        "board of directors": "董事会",
        "chairman": "董事长",
        "finance department": "财务部 财务部门 财务处",
        "human resources department": "人力资源部 人事部 人事部门 人力资源部门",
        "procurement department": "采购部 采购部门",
        "legal department": "法务部 法律部 法务部门",
        "audit department": "审计部 内审部 审计部门",
        "reimbursement": "报销",
        "procurement": "采购",
        "payment": "付款 支付",
        "loan": "借款 贷款",
        "budget": "预算",
        "contract": "合同",
        "travel": "差旅 差旅费 出差",
        "leave": "请假 休假",
        "annual leave": "年假",
        "sick leave": "病假",
        "overtime": "加班",
        "refund": "退款",
        "complaint": "投诉",
        "donation": "捐赠",
        "guarantee": "担保",
        "investment": "投资",
        "tender": "招标",
        "training": "培训",
        "invoice": "发票",
        "lease": "租赁",
        "entertainment": "招待 招待费",
        "warranty": "保修",
        "compensation": "赔偿",
    }.items()
    for spelling in spellings.split()
}
SAME_EN: Final = {
    "reimburse": "reimbursement",
    "reimbursed": "reimbursement",
    "expense claim": "reimbursement",
    "purchase": "procurement",
    "purchasing": "procurement",
    "business trip": "travel",
    "financial director": "finance director",
    "director of finance": "finance director",
    "head office": "headquarters",
    "branch office": "branch",
    "vendor": "supplier",
    "head of department": "department head",
    "departmental manager": "department manager",
    "hr department": "human resources department",
    "purchasing department": "procurement department",
    "leave of absence": "leave",
}
