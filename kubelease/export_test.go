package kubelease

// ObjectName and LeaseName are the names of objects and of leases.
var (
	ObjectName = objectName
	LeaseName  = leaseName
)
